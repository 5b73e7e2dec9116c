#!/bin/bash
# dracut's module for a root file system on a braid volume: the same list of names as for
# initramfs-tools, /etc/braid/initramfs.

check() {
    [ -s "$dracutsysrootdir/etc/braid/initramfs" ] && return 0
    return 255
}

depends() {
    echo udev-rules
}

installkernel() {
    instmods loop fuse
}

install() {
    local name
    inst /usr/bin/braid
    inst /usr/libexec/braid/braid-volume
    inst_multiple mkdir cat cut
    inst_simple /etc/braid/initramfs
    while read -r name; do
        case $name in '' | '#'*) continue ;; esac
        inst_simple "/etc/braid/$name.toml" || {
            derror "braid: /etc/braid/initramfs names $name, and there is no /etc/braid/$name.toml"
            return 1
        }
    done <"$dracutsysrootdir/etc/braid/initramfs"
    # Before anything waits for the root device, after the members' drivers are there. Without the second line
    # systemd passes the queue over.
    inst_hook initqueue/settled 20 "$moddir/braid-up.sh"
    dracut_need_initqueue
}
