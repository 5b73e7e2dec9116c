# Run in a guest whose kernel has the ublk driver; $KLAB_SHARE has the programs. Ends with `passed` if all went well.
set -eu
export PATH=$KLAB_SHARE:$PATH HOME=/tmp BRAID_CONFIG_DIR=/tmp/braid/config BRAID_DEV_DIR=/tmp/braid/dev \
    BRAID_RUN_DIR=/tmp/braid/run BRAID_STATE_DIR=/tmp/braid/state
modprobe ublk_drv
mkdir -p /tmp/m /tmp/braid
fail() { echo "FAILED: $*"; exit 1; }
stage() { echo "stage: $*"; }
# The device of a volume.
device() { braid status "$1" --json | sed -n 's/.*"address": *"\(\/dev\/ublkb[0-9]*\)".*/\1/p' | head -1; }
same() { [ "$(sha256sum <"$1" | cut -c1-64)" = "$2" ] || fail "$1 has other bytes"; }

stage doctor
braid doctor | grep 'ublk' || true

stage "a RAM disk: auto takes ublk"
braid up 'ram(64M)' --name r
dev=$(device r)
[ -b "$dev" ] || fail "r is no block device: $dev"
[ "$(readlink -f /tmp/braid/dev/r)" = "$dev" ] || fail "no link"
head -c 16M /dev/urandom >/tmp/random
sum=$(sha256sum </tmp/random | cut -c1-64)
dd if=/tmp/random of="$dev" bs=1M oflag=direct status=none
dd if="$dev" of=/tmp/back bs=4k count=4096 iflag=direct status=none
same /tmp/back "$sum"
dd if=/tmp/random of="$dev" bs=4k count=1 seek=1024 oflag=direct,dsync status=none
blkdiscard -o 0 -l 4M "$dev"
blkdiscard -z -o 4M -l 4M "$dev"
dd if="$dev" bs=1M skip=4 count=4 iflag=direct status=none | tr -d '\0' | wc -c | grep -qx 0 || fail "zeroes are not"
braid lock r
if dd if=/dev/zero of="$dev" bs=4k count=1 oflag=direct status=none 2>/dev/null; then fail "a locked volume was written"; fi
braid unlock r
braid resize r 32M
braid down r
[ ! -e "$dev" ] || fail "$dev is still there"

stage "a mirror of files: file systems"
truncate -s 96M /tmp/a.img /tmp/b.img
braid create m --level 1 --metadata 1.2 /tmp/a.img /tmp/b.img
braid up m --attach ublk
dev=$(device m)
mkfs.ext4 -q -F "$dev"
mount "$dev" /tmp/m
cp /tmp/random /tmp/m/random
if braid down m 2>/dev/null; then fail "a volume in use went down"; fi
sync
fstrim /tmp/m

stage "kill -9 under load: requests wait, up takes the device over"
pid=$(braid status m --json | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' | head -1)
(for i in 1 2 3 4 5 6 7 8; do
    dd if=/tmp/random of=/tmp/m/copy$i bs=64k count=64 oflag=direct status=none || exit 1
 done; echo written >/tmp/writer) &
writer=$!
sleep 0.3
kill -9 "$pid"
sleep 0.5
[ -b "$dev" ] || fail "$dev went with its server"
braid up m --attach ublk
[ "$(device m)" = "$dev" ] || fail "m has another device: $(device m)"
wait $writer || fail "a write failed"
[ "$(cat /tmp/writer)" = written ] || fail "the writer did not end"
same /tmp/m/random "$sum"
four=$(head -c 4M /tmp/random | sha256sum | cut -c1-64)
for i in 1 2 3 4 5 6 7 8; do same /tmp/m/copy$i "$four"; done
umount /tmp/m
e2fsck -fn "$dev" || fail "the file system is damaged"

stage "members do not differ"
braid scrub m --wait
braid status m --json | grep -q '"mismatch[a-z_]*": *[1-9]' && fail "members differ"

stage "kill -9, and down takes the device away"
pid=$(braid status m --json | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' | head -1)
kill -9 "$pid"
sleep 0.5
braid down m --force || true
[ ! -e "$dev" ] || fail "$dev is still there"

stage "a RAM disk does not outlive its process"
braid up 'ram(16M)' --name r
dev=$(device r)
pid=$(braid status r --json | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' | head -1)
kill -9 "$pid"
for i in $(seq 100); do [ -e "$dev" ] || break; sleep 0.1; done
[ ! -e "$dev" ] || fail "the device of a RAM disk outlived it"
braid up 'ram(16M)' --name r
braid down r

if command -v fio >/dev/null; then
    stage "raid5: fio verifies"
    truncate -s 40M /tmp/c.img /tmp/d.img /tmp/e.img
    braid create p --level 5 --metadata 1.2 /tmp/c.img /tmp/d.img /tmp/e.img
    braid up p --attach ublk
    fio --name=v --filename="$(device p)" --rw=randwrite --bs=4k-64k --size=16M --direct=1 --ioengine=libaio \
        --iodepth=16 --verify=crc32c --output=/tmp/fio.log || { cat /tmp/fio.log; fail "fio"; }
    braid scrub p --wait
    braid down p
fi
echo passed
