#!/bin/bash
# Makes the file system of fuzz/corpus/files/btrfs, in a guest with btrfs, on a disk of 128 MiB:
#   klab run --root / --disk IMAGE --script btrfs.sh; cargo run --manifest-path crates/files/Cargo.toml --example pack IMAGE
# Nodes that no tree has any more were made zeros, so that the image is small.
set -eu
D=($KLAB_DISKS)
mkfs.btrfs -q -n 4096 -m dup ${D[0]}
mount -t btrfs ${D[0]} /mnt
cd /mnt
seq 10 > small
seq 8000 > large
ln large again
ln -s large link
mkdir -p a/b many
for i in $(seq 300); do : > "many/a name of some length $i"; done
truncate -s 1M a/hole; seq 500 | dd of=a/hole bs=64K seek=4 conv=notrunc status=none
fallocate -l 128K a/b/reserved
btrfs subvolume create volume  > /dev/null
seq 1500 > volume/inside
cp --reflink=always large volume/shared
btrfs subvolume snapshot -r volume volume/snapshot >/dev/null
mkdir packed; chattr +c packed
seq 6000 > packed/numbers
sync
cd /; umount /mnt
