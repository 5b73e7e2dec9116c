# In the guest: raid5 of four RAM disks by the kernel's md, and by braid over NBD, written in turn.
#
#   $1 braid   $2 rounds   $3 seconds of each in a round   $4 MiB of each RAM disk
#
# Prints lines "@ SUBJECT REQUESTS_PER_SECOND" and, once, "@ ready".
set -euo pipefail
BRAID=$1 ROUNDS=$2 SECONDS_EACH=$3 MIB=$4
LOG=${KLAB_SHARE:-/tmp}/beside-md.log
exec 2>"$LOG"
set -x

modprobe brd rd_nr=8 rd_size=$((MIB * 1024)) max_part=0
modprobe nbd nbds_max=1 max_part=0
THEIRS=(/dev/ram{0,1,2,3})
OURS=(/dev/ram{4,5,6,7})
# Pages of RAM disks are there once they are written; zeroes have parity that fits.
for disk in "${THEIRS[@]}" "${OURS[@]}"; do
    dd if=/dev/zero of="$disk" bs=1M count="$MIB" oflag=direct status=none
done
create() { # DEVICE MEMBERS...
    mdadm --create "$1" --run --quiet --assume-clean --level=5 --raid-devices=4 --chunk=64 \
        --bitmap=none --consistency-policy=resync "${@:2}"
}
# The same superblocks for both; the kernel lets go of those that braid takes.
create /dev/md8 "${OURS[@]}"
mdadm --stop --quiet /dev/md8
create /dev/md9 "${THEIRS[@]}"

SOCKET=/tmp/beside-md.sock
"$BRAID" serve "md($(IFS=,; echo "${OURS[*]}"))" --nbd "unix:$SOCKET" >>"$LOG" 2>&1 &
SERVER=$!
for _ in $(seq 300); do
    [ -S "$SOCKET" ] && break
    kill -0 $SERVER
    sleep 0.1
done
nbd-client -unix "$SOCKET" /dev/nbd0 -block-size 4096 >>"$LOG" 2>&1
echo "@ ready"

measure() { # NAME DEVICE ROUND
    fio --name="$1" --filename="$2" --direct=1 --ioengine=libaio --rw=randwrite --bs=4k \
        --iodepth=32 --norandommap=1 --randseed="$3" --gtod_reduce=1 --time_based=1 \
        --runtime="$SECONDS_EACH" --ramp_time=1 --output-format=terse --terse-version=3 |
        awk -F';' -v name="$1" 'NF > 49 { print "@", name, $49 }'
}
for round in $(seq "$ROUNDS"); do
    if [ $((round % 2)) = 1 ]; then
        measure md /dev/md9 "$round"
        measure braid /dev/nbd0 "$round"
    else
        measure braid /dev/nbd0 "$round"
        measure md /dev/md9 "$round"
    fi
done

nbd-client -d /dev/nbd0 >>"$LOG" 2>&1
kill -TERM $SERVER
wait $SERVER || true
# What was written has parity that fits, says the kernel of both.
mdadm --assemble --run --quiet /dev/md8 "${OURS[@]}"
for array in md8 md9; do
    echo check >/sys/block/$array/md/sync_action
    while [ "$(cat /sys/block/$array/md/sync_action)" != idle ]; do sleep 0.2; done
    echo "@ mismatches $(cat /sys/block/$array/md/mismatch_cnt)"
done
