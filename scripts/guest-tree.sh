#!/bin/sh
# Makes a Debian for guests in FOLDER/bookworm, as vmlinuz, initrd and root.img (ext4): guest-tree.sh FOLDER
#
# It has systemd, udev, dpkg, mdadm and smartctl of its own, a program that does what a test says (tests/systemd/told.sh),
# and no braid: the test installs the package. Nothing is installed here. One that is there already, of this
# script and these files, is left as it is.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
told=$here/tests/systemd
made_of=$(cat "$0" "$told/told.sh" "$told/told.service" | sha256sum)
folder=$1/bookworm
mkdir -p "$folder" && folder=$(cd "$folder" && pwd)
[ "$(cat "$folder/made-of" 2>/dev/null)" != "$made_of" ] || exit 0
if [ "$(id -u)" != 0 ]; then
    echo 'guest-tree: only root can make its files root'\''s' >&2
    exit 1
fi

rm -rf "$folder"
mkdir -p "$folder"
tree=$folder/tree
# Its own initramfs has the kernel's md take nothing, where an administrator has lines of `ARRAY <ignore>`
# (docs/boot.md): where braid's rule has to be first is the system itself.
# It has a root of its own there, and a namespace for whatever is mounted while its packages are set up.
mmdebstrap --quiet --variant=minbase \
    --include=systemd-sysv,udev,kmod,e2fsprogs,procps,busybox,mdadm,smartmontools,linux-image-cloud-amd64,initramfs-tools,dracut-core \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --essential-hook='mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/etc/mdadm"' \
    --essential-hook='echo "AUTO -all" >"$1/etc/mdadm/mdadm.conf"' \
    --essential-hook='printf "MODULES=list\nCOMPRESS=gzip\n" >"$1/etc/initramfs-tools/conf.d/guest"' \
    --essential-hook='printf "virtio_pci\nvirtio_blk\n" >"$1/etc/initramfs-tools/modules"' \
    bookworm "$tree"

rm "$tree/etc/mdadm/mdadm.conf"
install -m 755 "$told/told.sh" "$tree/usr/local/sbin/told"
install -m 644 "$told/told.service" "$tree/etc/systemd/system/told.service"
echo guest >"$tree/etc/hostname"
: >"$tree/etc/fstab"
ln -s ../told.service "$tree/etc/systemd/system/multi-user.target.wants/told.service"
# An emulated processor has no time for these.
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service \
    fstrim.timer serial-getty@ttyS0.service getty@tty1.service getty-static.service smartmontools.service; do
    ln -sf /dev/null "$tree/etc/systemd/system/$unit"
done
# A package's installation makes none: mkinitramfs and dracut are called by who wants one.
echo 'update_initramfs=no' >"$tree/etc/initramfs-tools/update-initramfs.conf"
rm -rf "$tree"/var/cache/apt/* "$tree"/var/lib/apt/lists/*

mv "$tree"/boot/vmlinuz-* "$folder/vmlinuz"
cp "$tree"/boot/initrd.img-* "$folder/initrd"
truncate -s 2G "$folder/root.img"
mkfs.ext4 -q -L guest-root -d "$tree" "$folder/root.img"
rm -rf "$tree"
# Last: who finds it finds the rest.
echo "$made_of" >"$folder/made-of"
