#!/bin/bash
# Makes the images in fuzz/corpus/evidence (packed: crates/files/src/sparse.rs) whose tools few machines have: NTFS
# (ntfs-3g), LVM2 (lvm2), LUKS (cryptsetup-bin) and GPT (gdisk), and small ones of btrfs. As root: LVM2 wants devices.
# Contents are left out: beyond the given number of bytes an image has zeros.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
corpus=$here/../../../fuzz/corpus/evidence
work=$(mktemp -d)
loops=()
trap 'for loop in "${loops[@]}"; do losetup -d "$loop"; done; rm -rf "$work"' EXIT
cd "$work"

pack() { # IMAGE BYTES
    local size
    size=$(stat -c %s "$1")
    dd if="$1" of="$1.short" bs=512 count=$(($2 / 512)) status=none
    truncate -s "$size" "$1.short"
    cargo run --quiet --manifest-path "$here/../../files/Cargo.toml" --example pack "$work/$1.short" > "$corpus/$1"
    ls -l "$corpus/$1"
}

truncate -s 40M ntfs
mkntfs -F -q -f ntfs 2> /dev/null
echo small > small
for file in $(seq 30); do ntfscp -q ntfs small "file $file"; done
pack ntfs $((96 << 10))

for version in 1 2; do
    truncate -s 32M luks$version
    echo -n secret | cryptsetup luksFormat -q --type luks$version --pbkdf-force-iterations 1000 \
        $([ $version = 1 ] || echo --pbkdf pbkdf2) luks$version -
    pack luks$version $((32 << 10))
done

truncate -s 64M gpt
sgdisk -n 1:2048:+20M -n 2:0:+10M gpt > /dev/null
pack gpt $((64 << 20))
truncate -s 64M gpt-4k
loop=$(losetup -f --show -b 4096 gpt-4k)
loops+=("$loop")
printf 'label: gpt\nsize=20M\nsize=10M\n' | sfdisk -q --no-tell-kernel "$loop"
pack gpt-4k $((64 << 20))

for profile in single dup; do
    truncate -s 128M btrfs-$profile
    mkfs.btrfs -q -n 4096 -m $profile btrfs-$profile
    pack btrfs-$profile $((128 << 20))
done

truncate -s 96M lvm2
truncate -s 64M second
for image in lvm2 second; do loops+=("$(losetup -f --show $image)"); done
devices=("${loops[@]: -2}")
export LVM_SYSTEM_DIR=$work/system LVM_SUPPRESS_FD_WARNINGS=1
mkdir -p "$LVM_SYSTEM_DIR"
cat > "$LVM_SYSTEM_DIR/lvm.conf" <<CONF
global { locking_dir = "$work/lock" }
devices { use_devicesfile = 0 global_filter = ["a|${devices[0]}|", "a|${devices[1]}|", "r|.*|"] }
activation { udev_sync = 0 udev_rules = 0 }
backup { backup = 0 archive = 0 }
CONF
lvm() { command lvm "$@" > /dev/null 2>&1; }
lvm pvcreate "${devices[@]}"
lvm vgcreate case "${devices[@]}"
lvm lvcreate --driverloaded n -an -Zn -Wn -n root -L 40M case
lvm lvcreate --driverloaded n -an -Zn -Wn -n home -L 80M case
lvm lvcreate --driverloaded n -an -Zn -Wn -n copied --type raid1 -L 4M case || true
sync
pack lvm2 $((1 << 20))
