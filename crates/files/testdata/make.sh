#!/bin/bash
# Makes NAME, a packed image (see src/sparse.rs), and NAME.txt, what the kernel says of where its files lie:
# offset in the file, place, length, whether it is written, path; one extent a line. Contents are zeros, so only metadata take room.
# With DIRTY=1 the image is taken while it is mounted, so that its journal is not empty, and there is no text.
# usage, as root: make.sh NAME SIZE MKFS [OPTIONS..]; images go to fuzz/corpus/files, texts beside this file.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=$1 size=$2
shift 2
work=$(mktemp -d)
trap 'mountpoint -q "$work/m" && umount "$work/m"; rm -rf "$work"' EXIT
truncate -s "$size" "$work/image"
"$@" "$work/image" > /dev/null
mkdir "$work/m"
mount -o loop "$work/image" "$work/m"
cd "$work/m"
pack() {
    cargo run --quiet --manifest-path "$here/../Cargo.toml" --example pack "$work/$1" > "$here/../../../fuzz/corpus/files/$name"
    ls -l "$here/../../../fuzz/corpus/files/$name"
}
zeros() { dd if=/dev/zero of="$1" bs=1024 count="$2" seek="$3" conv=notrunc status=none; }
mkdir -p one/two/three many
for number in $(seq ${MANY:-60}); do : > "many/an entry with a longer name $number"; done
zeros one/two/three/file 20 0
ln one/two/three/file one/linked
zeros "one/line
break" 3 0
for number in $(seq 0 ${PIECES:-8}); do zeros one/sparse 1 $((number * 16 + 1)); done
fallocate -l 9000 one/reserved 2> /dev/null || true
ln -s "$(printf 'long/%.0s' $(seq 60))" link
ln -s short one/link
if [ "${DIRTY:-}" ]; then
    sync -f .
    rm -r many
    sync -f .
    cp "$work/image" "$work/dirty"
    pack dirty
    cd /
    exit
fi
# What xfs allocates ahead, it frees at the latest when it is unmounted.
cd /
umount "$work/m"
mount -o loop "$work/image" "$work/m"
cd "$work/m"
# xfs says nothing of directories.
find . ! -type l $(stat -f -c %T . | grep -q xfs && echo ! -type d) -print0 | sort -z | while IFS= read -r -d '' path; do
    name=$(printf %s "/${path#./}" | tr '\n' '?')
    filefrag -v -b1 "$path" | grep -v inline | awk -F: -v name="${name/#\/./\/}" '/^ *[0-9]+:/ {
        split($2, offset, "[.]"); split($3, place, "[.]")
        print offset[1] + 0, place[1] + 0, $4 + 0, ($NF ~ /unwritten/ ? "unwritten" : "written"), name
    }'
done > "$here/$name.txt"
cd /
umount "$work/m"
pack image
