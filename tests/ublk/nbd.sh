# Run in a guest whose kernel has the NBD client; $KLAB_SHARE has the programs. Ends with `passed` if all went well.
set -eu
export PATH=$KLAB_SHARE:$PATH HOME=/tmp BRAID_CONFIG_DIR=/tmp/braid/config BRAID_DEV_DIR=/tmp/braid/dev \
    BRAID_RUN_DIR=/tmp/braid/run BRAID_STATE_DIR=/tmp/braid/state
mkdir -p /tmp/m /tmp/braid
fail() { echo "FAILED: $*"; braid status || true; dmesg | tail -20; exit 1; }
process() { braid status "$1" --json | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' | head -1; }
device() { braid status "$1" --json | sed -n 's/.*"address": *"\(\/dev\/nbd[0-9]*\)".*/\1/p' | head -1; }
same() { [ "$(head -c 4194304 "$1" | sha256sum | cut -c1-64)" = "$2" ] || fail "$1 has other bytes"; }
size() { blockdev --getsize64 "$1"; }

echo "stage: without the client"
if [ ! -e /dev/nbd0 ]; then
    if braid up 'ram(16M)' --name r --attach nbd 2>/tmp/why; then fail "a device without the client"; fi
    grep -q 'modprobe nbd' /tmp/why || fail "no next step: $(cat /tmp/why)"
fi
modprobe nbd nbds_max=4

echo "stage: a RAM disk"
head -c 4M /dev/urandom >/tmp/random
sum=$(sha256sum </tmp/random | cut -c1-64)
braid up 'ram(64M)' --name r --attach nbd --shards 2
dev=$(device r)
[ "$(readlink -f /tmp/braid/dev/r)" = "$dev" ] || fail "no link to '$dev'"
[ "$(size "$dev")" = 67108864 ] || fail "$dev has $(size "$dev") bytes"
[ "$(process r)" -gt 0 ] || fail "no process"
dd if=/tmp/random of="$dev" bs=1M oflag=direct status=none
same "$dev" "$sum"
dd if=/tmp/random of="$dev" bs=4k seek=2048 status=none
blkdiscard -o 16M -l 4M "$dev"
echo 3 >/proc/sys/vm/drop_caches
dd if="$dev" bs=4k skip=2048 count=1024 iflag=direct of=/tmp/back status=none
same /tmp/back "$sum"

echo "stage: a locked volume, another size"
braid lock r
if dd if=/dev/zero of="$dev" bs=4k count=1 oflag=direct status=none 2>/dev/null; then fail "a locked volume was written"; fi
braid unlock r
braid resize r 96M
[ "$(size "$dev")" = 100663296 ] || fail "$dev has $(size "$dev") bytes after it grew"
dd if=/tmp/random of="$dev" bs=1M seek=90 oflag=direct status=none

echo "stage: what was written into the page cache is there after down and up"
truncate -s 96M /tmp/a.img /tmp/b.img
braid create m --level 1 --metadata 1.2 /tmp/a.img /tmp/b.img
braid up m --attach nbd
[ "$(device m)" != "$dev" ] || fail "two volumes on $dev"
dd if=/tmp/random of="$(device m)" bs=4k status=none
braid down m
braid up m --attach nbd
same "$(device m)" "$sum"

echo "stage: a file system in use"
mkfs.ext4 -q -F "$(device m)"
mount "$(device m)" /tmp/m
cp /tmp/random /tmp/m/random
if braid down m 2>/tmp/why; then fail "a volume in use went down"; fi
grep -q /tmp/m /tmp/why || fail "the user is not named: $(cat /tmp/why)"
fstrim /tmp/m
umount /tmp/m

echo "stage: nbd-client takes no device of braid's, and braid none of its"
braid up 'ram(16M)' --name s --attach none --nbd unix:/tmp/s.nbd
used=$(braid up 'ram(16M)' --name t --attach nbd >/dev/null && device t)
braid down t
if command -v nbd-client >/dev/null; then
    nbd-client -unix /tmp/s.nbd "$used" >/dev/null
    braid up 'ram(16M)' --name t --attach nbd
    [ "$(device t)" != "$used" ] || fail "t was given $used, which nbd-client has"
    nbd-client -d "$used" >/dev/null
    braid down t
fi
braid down s

echo "stage: fio verifies"
if command -v fio >/dev/null; then
    truncate -s 64M /tmp/c.img /tmp/d.img /tmp/e.img
    braid create p --level 5 --metadata 1.2 /tmp/c.img /tmp/d.img /tmp/e.img
    braid up p --attach nbd --shards 2
    fio --name=v --filename="$(device p)" --rw=randwrite --bs=4k-64k --size=16M --direct=1 --ioengine=libaio \
        --iodepth=16 --verify=crc32c --output=/tmp/fio.log || { cat /tmp/fio.log; fail "fio"; }
    braid scrub p --wait
    braid status p --json | grep -q '"mismatch[a-z_]*": *[1-9]' && fail "members differ"
    braid down p
fi

echo "stage: kill -9 under a mount; up takes away what is left, and the file system is whole"
dev=$(device m)
mount "$dev" /tmp/m
cp /tmp/random /tmp/m/synced
sync
killed=$(process m)
kill -9 "$killed"
for i in $(seq 100); do [ -e "/proc/$killed" ] || break; sleep 0.1; done
braid up 'ram(16M)' --name t --attach nbd
[ "$(device t)" != "$dev" ] || fail "t was given $dev, which is mounted"
braid up m --attach nbd 2>&1 | tee /tmp/told
grep -q 'was taken away, and what was mounted on it: /tmp/m' /tmp/told || fail "nothing is said of what was left: $(cat /tmp/told)"
grep -q " /tmp/m " /proc/mounts && fail "the dead file system is still mounted"
mount "$(device m)" /tmp/m
same /tmp/m/synced "$sum"
umount /tmp/m
e2fsck -fn "$(device m)" || fail "the file system is damaged"

echo "stage: down by force under a mount"
mount "$(device m)" /tmp/m
cp /tmp/random /tmp/m/forced
braid down m --force
braid up m --attach nbd
mount "$(device m)" /tmp/m
same /tmp/m/forced "$sum"
umount /tmp/m
for name in m r t; do braid down $name; done
for disk in /sys/block/nbd*; do [ ! -e "$disk/pid" ] || fail "$disk is still connected"; done
echo passed
