# What the sections of a guest's script use. Each section is a subshell with
#   ID     its name                     MD      its array, /dev/mdN
#   MEMBERS  its loop devices           SYS     /sys/block/mdN/md
# and with its output in /share/ID.log. What the host shall know goes out by `say KEY VALUE`.
set -u
modprobe -q loop
exec 3>&1
echo 0 >/proc/sys/kernel/printk
echo 1 >/proc/sys/kernel/sysrq

say() { echo "@ $ID $*" >&3; }

# attach IMAGE..: loop devices on images of /share, as MEMBERS.
attach() {
    MEMBERS=()
    local image
    for image in "$@"; do MEMBERS+=("$(losetup --find --show "/share/$image")"); done
}

detach() { losetup --detach "${MEMBERS[@]}"; }

# Waits, without starting a program: each costs a tenth of a second here.
exec {clock}<> <(:)
pause() { read -r -t "$1" -u "$clock" || true; }

# Waits until neither resync nor recovery nor check goes on, and no resync is due.
settle() {
    local tries
    [ -e "$SYS/sync_action" ] || return 0
    pause 0.1
    for tries in {1..1200}; do
        [ "$(<"$SYS/sync_action") $(<"$SYS/resync_start")" = "idle none" ] && return 0
        pause 0.1
    done
    echo "still $(<"$SYS/sync_action") after a long time" >&2
    return 1
}

# What md has done of itself with the array since the machine was booted, by its own log: resync,
# recover (once written recovery), or idle. (`sync_action` says idle before md has looked, and after
# a short pass.)
action() {
    local did
    settle
    did=$(dmesg | sed -En "s,.*md: (resync|recover)y? of RAID array ${MD#/dev/}$,\1,p" | tail -n 1)
    echo "${did:-idle}"
}

# Waits until no member is missing any more, as when one is being filled.
whole() {
    local tries
    for tries in {1..1200}; do
        [ "$(<"$SYS/degraded")" = 0 ] && { settle; return; }
        pause 0.1
    done
    echo "still degraded by $(<"$SYS/degraded") after a long time" >&2
    return 1
}

# Waits until a pass has come that far, in sectors.
reach() {
    local tries
    for tries in {1..1200}; do
        read -r done _ <"$SYS/sync_completed"
        [ "$done" != none ] && [ "$done" -ge "$1" ] && return 0
        pause 0.02
    done
    echo "never came to sector $1" >&2
    return 1
}

# speed KIB: how much md's passes do in a second.
speed() {
    echo "$1" >/proc/sys/dev/raid/speed_limit_min
    echo "$1" >/proc/sys/dev/raid/speed_limit_max
}

create() { mdadm --create "$MD" --run --quiet --homehost=none "$@"; }

# Assembles MEMBERS; mdadm must have nothing to say against any.
assemble() {
    local member said
    for member in "${MEMBERS[@]}"; do
        said=$(mdadm --examine "$member" 2>&1 >/dev/null)
        [ -z "$said" ] || { echo "examine says: $said"; return 1; }
    done
    mdadm --assemble "$MD" "$@" "${MEMBERS[@]}"
}

size() { blockdev --getsize64 "$MD"; }

# fill FILE [OFFSET LENGTH]: that part of the array is that part of the file.
fill() {
    local offset=${2:-0} length=${3:-$(size)}
    dd if="/share/$1" of="$MD" bs=64K iflag=skip_bytes,count_bytes oflag=seek_bytes \
        skip="$offset" seek="$offset" count="$length" conv=fsync,notrunc status=none
}

# scribble FILE...: writes the first MiB of each over that of the array, again and again until the
# machine dies. (Between two turns md would call the array clean, after a fifth of a second.)
scribble() {
    echo 0 >"$SYS/safe_mode_delay"
    scribble_once "$@"
    while scribble_once "$@"; do :; done &
}

scribble_once() {
    local file
    for file in "$@"; do
        dd if="/share/$file" of="$MD" bs=16K count=64 oflag=direct conv=notrunc status=none || return
    done
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
