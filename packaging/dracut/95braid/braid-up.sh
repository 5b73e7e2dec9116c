#!/bin/sh
# Runs whenever devices have settled, until every volume is up. How often before a volume is started
# without its missing members: braid.wait=SECONDS on the kernel's command line, 15 without it.

type getarg >/dev/null 2>&1 || . /lib/dracut-lib.sh

wait_for=$(getarg braid.wait=)
wait_for=${wait_for:-15}
now=$(cut -d. -f1 /proc/uptime)
[ -e /run/braid-since ] || echo "$now" >/run/braid-since
since=$(cat /run/braid-since)

while read -r name; do
    case $name in '' | '#'*) continue ;; esac
    rule=/run/udev/rules.d/65-braid-$name.rules
    [ -e "$rule" ] && continue
    log=/run/braid-initramfs-$name.log
    said=$(cat "$log" 2>/dev/null)
    degraded=''
    [ $((now - since)) -ge "$wait_for" ] && degraded=--degraded
    if device=$(braid up "$name" --attach fuse --root-storage $degraded 2>"$log"); then
        device=${device%%
*}
        # systemd waits for a unit of /dev/braid/NAME, which there is if udev has made the link: by a rule that
        # outlasts the initramfs.
        mkdir -p "${rule%/*}"
        echo "SUBSYSTEM==\"block\", KERNEL==\"${device#/dev/}\", SYMLINK+=\"braid/$name\", TAG+=\"systemd\"" >"$rule"
        udevadm control --reload
        udevadm trigger --action=change --settle "$device"
    elif [ "$said" != "$(cat "$log")" ]; then
        warn "braid: $name does not start: $(cat "$log")"
    fi
done </etc/braid/initramfs
