#!/bin/sh
# Does what the test says: a length, and a script of so many bytes; its exit status, the length of what it
# said, and that go back.
exec 3<>/dev/virtio-ports/told
while read -r length <&3; do
    head -c "$length" <&3 >/run/told.script
    sh /run/told.script >/run/told.said 2>&1 </dev/null
    echo "$? $(stat -c %s /run/told.said)" >&3
    cat /run/told.said >&3
done
