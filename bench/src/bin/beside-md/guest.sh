# In the guest: raid5 of four RAM disks by the kernel's md, and by braid over ublk; RAM disks of the kernel, and of braid
# over ublk and over FUSE with a loop device; and rublk's null, which carries out nothing and moves no data.
#
#   $1 rounds   $2 seconds of each in a round   $3 MiB of each RAM disk   $KLAB_SHARE the programs
#
# Prints lines "@ SUBJECT REQUESTS_PER_SECOND", for servers of ublk "@ time-SUBJECT MICROSECONDS_A_REQUEST" (of their
# processor time) and, once, "@ ready".
set -euo pipefail
export PATH=$KLAB_SHARE:$PATH HOME=/tmp BRAID_CONFIG_DIR=/tmp/braid/config BRAID_DEV_DIR=/tmp/braid/dev \
    BRAID_RUN_DIR=/tmp/braid/run BRAID_STATE_DIR=/tmp/braid/state
ROUNDS=$1 SECONDS_EACH=$2 MIB=$3
LOG=$KLAB_SHARE/beside-md.log
exec 2>"$LOG"
set -x

modprobe brd rd_nr=9 rd_size=$((MIB * 1024)) max_part=0
modprobe ublk_drv
modprobe loop || true
modprobe fuse || true
mkdir -p /tmp/braid
THEIRS=(/dev/ram{0,1,2,3})
OURS=(/dev/ram{4,5,6,7})
# Pages of RAM disks are there once they are written; zeroes have parity that fits.
fill() { dd if=/dev/zero of="$1" bs=1M count="$MIB" oflag=direct status=none || true; }
for disk in "${THEIRS[@]}" "${OURS[@]}" /dev/ram8; do fill "$disk"; done
create() { # DEVICE MEMBERS...
    mdadm --create "$1" --run --quiet --assume-clean --level=5 --raid-devices=4 --chunk=64 \
        --bitmap=none --consistency-policy=resync "${@:2}"
}
# The same superblocks for both; the kernel lets go of those that braid takes.
create /dev/md8 "${OURS[@]}"
mdadm --stop --quiet /dev/md8
create /dev/md9 "${THEIRS[@]}"

up() { # NAME STACK WAY
    braid up "$2" --name "$1" --attach "$3" >>"$LOG" 2>&1
    readlink -f "$BRAID_DEV_DIR/$1"
}
RAID5=$(up raid5 "md($(IFS=,; echo "${OURS[*]}"))" ublk)
UBLK=$(up ublk "ram(${MIB}M)" ublk)
SERVER=$(pgrep --newest --exact braid-volume)
FUSE=$(up fuse "ram(${MIB}M)" fuse)
fill "$UBLK"
fill "$FUSE"
NULL=
if [ -x "$KLAB_SHARE/rublk" ]; then
    mkdir -p /run/rublk
    rublk add null --number 9 --user-copy --depth 128 --quiet >>"$LOG" 2>&1
    NULL=/dev/ublkb9 NULL_SERVER=$(pgrep --newest --exact rublk)
fi
echo "@ ready"

# A kernel that runs as a process takes tens of microseconds to say what time it is, and some for each system call. So the
# client reads the processor's counter, and submits and takes many requests at a time.
measure() { # NAME DEVICE WAY ROUND
    fio --name="$1" --filename="$2" --direct=1 --ioengine=io_uring --rw="$3" --bs=4k \
        --iodepth=32 --iodepth_batch_submit=16 --iodepth_batch_complete_min=16 \
        --iodepth_batch_complete_max=32 --clocksource=cpu \
        --norandommap=1 --randseed="$4" --gtod_reduce=1 --time_based=1 \
        --runtime="$SECONDS_EACH" --ramp_time=1 --output-format=terse --terse-version=3 |
        awk -F';' -v name="$1" -v field="$([ "$3" = randread ] && echo 8 || echo 49)" \
            'NF > 49 { print "@", name, $field }'
}
# Ticks of a server's processor time, of which there are a hundred in a second, and requests that its device has seen.
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
requests() { awk '{ print $1 + $5 }' "/sys/block/${1##*/}/stat"; }
measure_server() { # PID NAME DEVICE WAY ROUND
    local ticks requests
    ticks=$(ticks "$1") requests=$(requests "$3")
    measure "${@:2}"
    awk -v ticks=$(($(ticks "$1") - ticks)) -v requests=$(($(requests "$3") - requests)) -v name="$2" \
        'BEGIN { printf "@ time-%s %.2f\n", name, ticks * 10000 / requests }'
}
all() { # ROUND, from stdin: NAME DEVICE WAY
    while read -r name device way; do
        case $name in
            ublk-*) measure_server "$SERVER" "$name" "$device" "$way" "$1" ;;
            null-*) measure_server "$NULL_SERVER" "$name" "$device" "$way" "$1" ;;
            *) measure "$name" "$device" "$way" "$1" ;;
        esac
    done
}
for round in $(seq "$ROUNDS"); do
    subjects="md /dev/md9 randwrite
raid5 $RAID5 randwrite
brd-read /dev/ram8 randread
ublk-read $UBLK randread
fuse-read $FUSE randread
brd-write /dev/ram8 randwrite
ublk-write $UBLK randwrite
fuse-write $FUSE randwrite"
    if [ -n "$NULL" ]; then
        subjects="$subjects
null-read $NULL randread
null-write $NULL randwrite"
    fi
    if [ $((round % 2)) = 0 ]; then subjects=$(echo "$subjects" | tac); fi
    echo "$subjects" | all "$round"
done

for name in raid5 ublk fuse; do braid down "$name" >>"$LOG" 2>&1; done
# What was written has parity that fits, says the kernel of both.
mdadm --assemble --run --quiet /dev/md8 "${OURS[@]}"
for array in md8 md9; do
    echo check >/sys/block/$array/md/sync_action
    while [ "$(cat /sys/block/$array/md/sync_action)" != idle ]; do sleep 0.2; done
    echo "@ mismatches $(cat /sys/block/$array/md/mismatch_cnt)"
done
