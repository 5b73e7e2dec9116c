# What the sections of a guest's script use. Each section is a subshell with
#   ID     its name                     MD      its array, /dev/mdN
#   MEMBERS  its loop devices           SYS     /sys/block/mdN/md
# and with its output in /share/ID.log. What the host shall know goes out by `say KEY VALUE`.
set -u
modprobe -q loop
exec 3>&1
echo 0 >/proc/sys/kernel/printk

say() { echo "@ $ID $*" >&3; }

# attach IMAGE..: loop devices on images of /share, as MEMBERS.
attach() {
    MEMBERS=()
    local image
    for image in "$@"; do MEMBERS+=("$(losetup --find --show "/share/$image")"); done
}

detach() { losetup --detach "${MEMBERS[@]}"; }

# What sync_action says once nothing goes on any more.
settle() {
    local action=none tries
    [ -e "$SYS/sync_action" ] || return 0
    for tries in {1..600}; do
        # With the superblocks written, which comes after the last block.
        action=$(<"$SYS/sync_action")
        [ "$action" = idle ] && mdadm --wait "$MD" || true
        [ "$action" = idle ] && return 0
        sleep 0.2
    done
    echo "still $action after a long time" >&2
    return 1
}

create() { mdadm --create "$MD" --run --quiet --homehost=none "$@"; }

# Assembles MEMBERS; mdadm must have nothing to say against any.
assemble() {
    local member said
    for member in "${MEMBERS[@]}"; do
        said=$(mdadm --examine "$member" 2>&1 >/dev/null)
        [ -z "$said" ] || { echo "examine says: $said"; return 1; }
    done
    # 0.90 and linear: without --run a degraded array is not started.
    mdadm --assemble "$MD" "$@" "${MEMBERS[@]}"
}

size() { blockdev --getsize64 "$MD"; }

# fill FILE [OFFSET LENGTH]: that part of the array is that part of the file.
fill() {
    local offset=${2:-0} length=${3:-$(size)}
    dd if="/share/$1" of="$MD" bs=64K iflag=skip_bytes,count_bytes oflag=seek_bytes \
        skip="$offset" seek="$offset" count="$length" conv=fsync,notrunc status=none
}

# same FILE [OFFSET LENGTH]: whether it is.
same() {
    cmp --ignore-initial="${2:-0}" --bytes="${3:-$(size)}" "/share/$1" "$MD"
}

# Whether all copies are equal, by md's own account.
check() {
    settle
    echo check >"$SYS/sync_action"
    settle
    local count
    count=$(<"$SYS/mismatch_cnt")
    say mismatches "$count"
    [ "$count" = 0 ]
}

stop() {
    settle
    mdadm --stop "$MD"
    detach
}

# Makes a file system, puts `a` and `b` (their first MiB) into it, and checks it.
filesystem() {
    local folder=/tmp/$ID
    mkfs.ext4 -q -F "$MD"
    mkdir -p "$folder"
    mount "$MD" "$folder"
    mkdir "$folder/sub"
    head -c 1M /share/a >"$folder/a"
    head -c 1M /share/b >"$folder/sub/b"
    umount "$folder"
    fsck.ext4 -f -n "$MD"
}
