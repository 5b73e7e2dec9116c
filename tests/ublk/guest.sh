# Run in a guest whose kernel has the ublk driver; $KLAB_SHARE has the programs. Ends with `passed` if all went well.
set -eu
export PATH=$KLAB_SHARE:$PATH HOME=/tmp BRAID_CONFIG_DIR=/tmp/braid/config BRAID_DEV_DIR=/tmp/braid/dev \
    BRAID_RUN_DIR=/tmp/braid/run BRAID_STATE_DIR=/tmp/braid/state
modprobe ublk_drv
mkdir -p /tmp/m /tmp/braid
# Where the processes of volumes are, and what the driver still has under way.
look() {
    for task in /proc/[0-9]*/task/[0-9]*; do
        command=$(tr '\0' ' ' <"$task/cmdline" 2>/dev/null) || continue
        state=$(sed -n 's/^State:[^A-Z]*//p' "$task/status" 2>/dev/null) || continue
        case "$command$state" in *braid*|D*) ;; *) continue ;; esac
        echo "$task $(cat "$task/comm") $state in $(cat "$task/wchan"): $command"
        cat "$task/stack" 2>/dev/null || true
    done
    for ring in /proc/[0-9]*/fdinfo/*; do
        if grep -q SqMask "$ring" 2>/dev/null; then
            echo "$ring" && grep -E 'SqTail|CqTail|op=' "$ring" | head -20
        fi
    done
    for disk in /sys/block/ublkb*; do
        if [ -e "$disk" ]; then echo "$disk has under way: $(cat "$disk/inflight")"; fi
    done
    timeout 5 braid status --json | head -c 8000 || true
    dmesg | tail -20
}
fail() { echo "FAILED: $*"; look; exit 1; }
stage() { echo "stage: $*"; echo "$*" >/tmp/stage; }
# Shows what hangs, if a stage lasts.
stage start
(
    before= same=0
    while sleep 5; do
        now=$(cat /tmp/stage)
        if [ "$now" = "$before" ]; then same=$((same + 5)); else same=0; fi
        before=$now
        if [ $same -ge 180 ]; then echo "a stage lasts: $now"; look; exit; fi
    done
) &
watchdog=$!
process() { braid status "$1" --json | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' | head -1; }
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
pid=$(process m)
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

for round in $(seq 20); do
    stage "kill -9 under load, round $round"
    rm -f /tmp/stop
    for size in 16 64; do
        (while [ ! -e /tmp/stop ]; do
            dd if=/tmp/random of=/tmp/m/copy$size bs=${size}k count=40 oflag=direct status=none || exit 1
         done; echo written >/tmp/writer$size) &
    done
    sleep 0.$((round * 7 % 10))
    kill -9 "$(process m)"
    sleep 0.$((round * 3 % 5))
    braid up m --attach ublk >/dev/null
    touch /tmp/stop
    for size in 16 64; do
        for i in $(seq 300); do [ -e /tmp/writer$size ] && break; sleep 0.2; done
        rm /tmp/writer$size || fail "a writer did not end"
    done
done
umount /tmp/m
e2fsck -fn "$dev" || fail "the file system is damaged"

stage "members do not differ"
braid scrub m --wait
braid status m --json | grep -q '"mismatch[a-z_]*": *[1-9]' && fail "members differ"

stage "kill -9, and down takes the device away"
pid=$(process m)
kill -9 "$pid"
sleep 0.5
braid down m --force || true
[ ! -e "$dev" ] || fail "$dev is still there"

if command -v strace >/dev/null; then
    # Brings m up, and kills the processes that do so before their Nth command to the driver. Fails if there are fewer.
    up_killed_before() {
        strace -I 2 -f -qq -o /dev/null -P /dev/ublk-control -e trace=openat -e "inject=openat:signal=KILL:when=$1" \
            braid up m --attach ublk >/tmp/traced 2>&1 &
        tracer=$!
        while kill -0 $tracer 2>/dev/null; do
            # The tracer waits for the volume, too.
            if braid status m --json 2>/dev/null | grep -q '"address": *"/dev/ublkb'; then
                kill $tracer
                wait $tracer || true
                return 1
            fi
            sleep 0.1
        done
        wait $tracer || true
    }

    steps=1
    while stage "killed before command $steps of a start" && up_killed_before $steps; do
        braid up m --attach ublk >/dev/null || fail "up after a start that was killed before command $steps"
        braid down m
        steps=$((steps + 1))
    done
    [ $steps -gt 4 ] || fail "a start has only $((steps - 1)) commands"
    braid down m

    steps=1 forced=0
    while :; do
        braid up m --attach ublk >/dev/null
        dev=$(device m)
        rm -f /tmp/stop
        (while [ ! -e /tmp/stop ]; do
            dd if=/tmp/random of="$dev" bs=16k count=20 oflag=direct status=none 2>/dev/null || break
         done; echo ended >/tmp/writer) &
        kill -9 "$(process m)"
        stage "killed before command $steps of taking a device over"
        was_killed=0
        up_killed_before $steps && was_killed=1
        if [ $was_killed = 1 ] && ! braid up m --attach ublk >/dev/null 2>/tmp/why; then
            grep -q 'braid down m --force' /tmp/why || fail "no next step: $(cat /tmp/why)"
            braid down m --force || true
            braid up m --attach ublk >/dev/null
            forced=$((forced + 1))
        fi
        touch /tmp/stop
        for i in $(seq 300); do [ -e /tmp/writer ] && break; sleep 0.1; done
        rm /tmp/writer || fail "a writer did not end"
        braid down m
        [ $was_killed = 1 ] || break
        steps=$((steps + 1))
    done
    [ $steps -gt 3 ] || fail "taking over has only $((steps - 1)) commands"
    echo "note: of $((steps - 1)) ends while a device was taken over, $forced needed force"
    braid up m --attach ublk >/dev/null
    braid scrub m --wait
    braid status m --json | grep -q '"mismatch[a-z_]*": *[1-9]' && fail "members differ"
    braid down m
fi

stage "a RAM disk does not outlive its process"
braid up 'ram(16M)' --name s
dev=$(device s)
pid=$(process s)
kill -9 "$pid"
for i in $(seq 100); do [ -e "$dev" ] || break; sleep 0.1; done
[ ! -e "$dev" ] || fail "the device of a RAM disk outlived it"
braid up 'ram(16M)' --name s
braid down s

if command -v fio >/dev/null && [ -x /usr/bin/python3 ]; then
    stage "raid5: data that change during a write"
    truncate -s 16M /tmp/f.img /tmp/g.img /tmp/h.img
    braid create q --level 5 --assume-clean /tmp/f.img /tmp/g.img /tmp/h.img
    braid up q --attach ublk
    torn=$(/usr/bin/python3 "$KLAB_SHARE/changing.py" "$(device q)" 8388608)
    [ "$torn" != 0 ] || echo "note: no data changed during a write"
    braid scrub q --wait
    braid down q

    stage "raid5: fio verifies"
    truncate -s 96M /tmp/c.img /tmp/d.img /tmp/e.img
    braid create p --level 5 --metadata 1.2 /tmp/c.img /tmp/d.img /tmp/e.img
    braid up p --attach ublk
    dev=$(device p)
    fio --name=v --filename="$dev" --rw=randwrite --bs=4k-64k --size=16M --direct=1 --ioengine=libaio \
        --iodepth=16 --verify=crc32c --output=/tmp/fio.log || { cat /tmp/fio.log; fail "fio"; }
    for round in 1 2 3; do
        # Requests hold all the memory that they may when the new process makes its log, which takes some.
        stage "raid5: kill -9 with all tags in use, round $round"
        fio --name=v --filename="$dev" --rw=randwrite --bsrange=4k-1m --size=100M --direct=1 --ioengine=libaio \
            --iodepth=256 --time_based --runtime=6 --eta=never --output=/tmp/fio.log &
        load=$!
        for i in $(seq 100); do grep -q ' [1-9]' "/sys/block/${dev#/dev/}/inflight" && break; sleep 0.1; done
        sleep 1
        kill -9 "$(process p)"
        braid up p --attach ublk >/dev/null
        wait $load || { cat /tmp/fio.log; fail "fio"; }
    done
    stage "raid5: scrub"
    braid scrub p --wait
    braid status p --json | grep -q '"mismatch[a-z_]*": *[1-9]' && fail "members differ"
    braid down p
fi
kill $watchdog
echo passed
