#!/bin/sh
# The main job, end to end, on real data, in a temporary folder that is removed afterwards.
#
#   1. four files become one striped block device
#   2. a file system on it takes a source tree, and gives it back after down and up
#   3. a mirror in Linux md's format loses a member under load, gets it back, and agrees
#   4. the laboratory compares the stripe with one member: files on this disk
#   5. the same over four modelled USB sticks, where the stripe scales
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
braid=${BRAID:-$root/target/release/braid}
keep=${DEMO_RESULTS:-$root/demo-results}
PATH="$PATH:/usr/sbin:/sbin"
started=$(date +%s)

work=$(mktemp -d "${TMPDIR:-/tmp}/braid-demo.XXXXXX")
export BRAID_RUN_DIR="$work/run" BRAID_CONFIG_DIR="$work/config" BRAID_STATE_DIR="$work/state"

clean_up() {
    status=$?
    trap - EXIT INT TERM
    cd /
    if mountpoint -q "$work/mnt" 2>/dev/null; then umount "$work/mnt" || true; fi
    for volume in demo mirror; do
        if [ -S "$BRAID_RUN_DIR/$volume.sock" ]; then "$braid" down "$volume" --force || true; fi
    done
    rm -rf "$work"
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { printf '\n== %s\n' "$*"; }
# Shows a command as it would be typed, and runs it.
run() {
    typed=''
    for word; do
        case $word in
            "$braid") word=braid ;;
            *[!A-Za-z0-9@%_+=:,./-]*) word="'$word'" ;;
        esac
        typed="$typed $word"
    done
    printf '   $%s\n' "$typed" >&2
    "$@"
}

cd "$work"
say "1. Four files become one device"
for member in a b c d; do truncate -s 1G "$member.img"; done
stack='raid0(chunk=64K, a.img, b.img, c.img, d.img)'
volume=$(run "$braid" up "$stack" --name demo)
echo "   $volume"
"$braid" status demo

tree=$(ls /usr/src/linux-source-*.tar.xz | tail -n 1)
if [ -b "$volume" ]; then
    say "2. ext4, a source tree, its checksums; down, up, and again"
    run mkfs.ext4 -q "$volume"
    mkdir mnt
    run mount "$volume" mnt
    printf '   unpacking %s without its drivers\n' "$tree"
    tar -C mnt -xf "$tree" --exclude='*/drivers'
    (cd mnt && find . -type f -print0 | sort -z | xargs -0 sha256sum) >sums
    echo "   $(wc -l <sums) files, $(du -sh mnt | cut -f1)"
    run umount mnt
    run "$braid" down demo
    volume=$(run "$braid" up demo)
    run fsck.ext4 -fn "$volume"
    run mount "$volume" mnt
    (cd mnt && sha256sum --quiet -c ../sums)
    echo "   every one of $(wc -l <sums) files has the same SHA-256"
    run umount mnt
else
    say "2. Not root: an ext4 image with a source tree is copied to the volume and back, over NBD"
    mkdir tree
    printf '   unpacking %s without its drivers\n' "$tree"
    tar -C tree -xf "$tree" --exclude='*/drivers'
    echo "   $(find tree -type f | wc -l) files, $(du -sh tree | cut -f1)"
    run mke2fs -q -t ext4 -d tree image 4G
    rm -rf tree
    sha256sum <image >sum
    run nbdcopy image "$volume"
    run "$braid" down demo
    volume=$(run "$braid" up demo)
    rm image
    run nbdcopy "$volume" image
    sha256sum -c sum <image
    run e2fsck -fn image
    rm image
fi
run "$braid" down demo
rm -f ./*.img

say "3. A mirror that Linux understands loses a member while it is written, and gets it back"
truncate -s 256M one.img two.img
run "$braid" create mirror --level raid1 --bitmap internal --assume-clean one.img two.img
run "$braid" up mirror --attach none >/dev/null
uri="nbd+unix:///?socket=$BRAID_RUN_DIR/mirror.nbd"
load() {
    fio --name=load --ioengine=nbd --uri="$uri" --rw=randwrite --bs=16k --iodepth=8 \
        --verify=crc32c --do_verify="$2" --time_based --runtime="$1" --size=200m --output=fio.log
}
load 4 0 &
writer=$!
sleep 1
run "$braid" member fail mirror two.img
sleep 1
run "$braid" status mirror
run "$braid" member remove mirror two.img
run "$braid" member re-add mirror two.img
wait "$writer"
load 2 1
echo "   fio read back all that it wrote: every checksum is right"
run "$braid" scrub mirror --wait
run "$braid" down mirror
before=$("$braid" cat mirror | sha256sum)
for member in one two; do
    alone=$("$braid" cat "md($member.img)" | sha256sum)
    [ "$alone" = "$before" ] || { echo "$member.img alone holds something else"; exit 1; }
done
echo "   each member alone holds the same $(echo "$before" | cut -c1-16)…"
run "$braid" examine one.img
rm -f one.img two.img

mkdir -p "$keep"
# Trials of a second and more, and of some tens of requests, or their page would doubt them.
campaign() { # NAME SINGLE STRIPE
    cat >"$1.toml" <<END
name = "$1"
repetitions = 5
runtime_s = 1.0
region = "64M"

[[subject]]
name = "single"
stack = '$2'
baseline = true

[[subject]]
name = "stripe"
stack = '$3'

[[job]]
pattern = "seq"
op = ["read", "write"]
block_size = "256K"

[[job]]
pattern = "rand"
op = ["read", "write"]
block_size = "4K"
END
}
say "4. One member against the stripe: files on this disk"
for member in a b c d; do truncate -s 64M "$member.img"; done
campaign files a.img "$stack"
cat files.toml
rm -rf "$keep/files"
run "$braid" lab run files.toml --out "$keep/files" \
    --destroy a.img --destroy b.img --destroy c.img --destroy d.img

say "5. The same over four modelled USB sticks, each on a bus of its own"
stick() { echo "model(usb-flash, size=64M, bus=usb2:$1)"; }
campaign models "$(stick 0)" "raid0(chunk=64K, $(stick 0), $(stick 1), $(stick 2), $(stick 3))"
rm -rf "$keep/models" "$keep/predicted"
run "$braid" model predict models.toml --output "$keep/predicted"
run "$braid" lab run models.toml --out "$keep/models"
say "6. What was predicted beside what was measured, and which layout six such sticks should have"
run "$braid" lab compare "$keep/predicted" "$keep/models" ||
    echo "   something is further apart than models are off by: the machine was busy, or a model is wrong"
run "$braid" advise 'cruzer-titanium*3@usb2:0' 'cruzer-titanium*3@usb2:1' --workload seq-read

say "Done in $(($(date +%s) - started)) s. The pages:"
echo "   $keep/files/report.html"
echo "   $keep/predicted/report.html"
echo "   $keep/models/report.html"
