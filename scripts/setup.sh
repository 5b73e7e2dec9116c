#!/bin/sh
# Installs what is missing, by Debian package: setup.sh [build] [test] [foreign] [guest] [kernels] [ceph] [lab] [demo] [bench]
#
# Root or sudo: apt-get. Anybody else: the packages are printed by name, and it stops. Programs in Python that Debian
# lacks come from PyPI, by name and version, into target/python; without a network, tests that use them are skipped.
# Nothing is touched where everything is there already.
set -eu

wanted=''
need() { # COMMAND-OR-FILE PACKAGE
    case $1 in
        /*) for found in $1; do [ -e "$found" ] && return 0; done ;;
        *) PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null 2>&1 && return 0 ;;
    esac
    case "$wanted " in *" $2 "*) ;; *) wanted="$wanted $2" ;; esac
}

python='' # for target/python
need_python() { # NAME VERSION
    file=$(echo "$1" | tr - _)
    for found in "$(dirname "$0")"/../target/python/lib/python3*/site-packages/"$file-$2.dist-info"; do
        [ -e "$found" ] && return 0
    done
    python="$python $1==$2"
}

install_python() {
    [ -n "$python" ] || return 0
    target=$(dirname "$0")/../target
    echo "installing from PyPI:$python"
    mkdir -p "$target"
    # shellcheck disable=SC2086 # the list is split on purpose
    python3 -m venv "$target/python" && "$target/python/bin/pip" install -q $python ||
        echo "setup.sh: cannot be installed, and tests that use it are skipped:$python" >&2
}

for purpose in "${@:-build}"; do
    case $purpose in
        build)
            need cc gcc
            need '/usr/include/stdio.h' libc6-dev
            ;;
        test)
            need fio fio
            need promtool prometheus
            need nbdkit nbdkit
            need nbdcopy libnbd-bin
            need lz4 lz4
            need '/usr/lib/python3/dist-packages/nbd.py' python3-libnbd
            need qemu-img qemu-utils
            need mkfs.ext4 e2fsprogs
            need mkfs.xfs xfsprogs
            need mkfs.btrfs btrfs-progs
            need losetup mount
            need socat socat
            need blkid util-linux
            need sfdisk fdisk
            need mdadm mdadm
            need xz xz-utils
            need sysbench sysbench
            need bonnie++ bonnie++
            need hdparm hdparm
            need strace strace
            need openssl openssl
            need chromium chromium
            need chromedriver chromium-driver
            need '/usr/lib/python3/dist-packages/selenium' python3-selenium
            need '/usr/lib/python3/dist-packages/markdown_it' python3-markdown-it
            need '/usr/lib/python3/dist-packages/aiosmtpd' python3-aiosmtpd
            need '/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf' fonts-dejavu-core
            need '/usr/lib/python3/dist-packages/openpyxl' python3-openpyxl
            need '/usr/lib/python3*/ensurepip' python3-venv
            need_python schemathesis 4.32.5
            need_python ansible-core 2.19.14
            ;;
        foreign)
            need cc gcc
            need pkg-config pkgconf
            need dpkg-source dpkg-dev
            need '/usr/include/glib-2.0/glib.h' libglib2.0-dev
            need '/usr/include/libnbd.h' libnbd-dev
            need python3 python3-minimal
            need git git
            ;;
        guest)
            need qemu-system-x86_64 qemu-system-x86
            need unmkinitramfs initramfs-tools-core
            need busybox busybox-static
            need strip binutils
            need mmdebstrap mmdebstrap
            need mkfs.ext4 e2fsprogs
            ;;
        kernels) # programs of this machine that run beside a kernel as a process
            need lvm lvm2
            need nbd-client nbd-client
            need zstd zstd
            ;;
        ceph)
            need ceph ceph-common
            need ceph-mon ceph-mon
            need ceph-mgr ceph-mgr
            need ceph-osd ceph-osd
            need '/usr/lib/*/librbd.so.1' librbd1
            need '/usr/lib/*/qemu/block-rbd.so' qemu-block-extra
            ;;
        lab)
            need fio fio
            need sysbench sysbench
            need bonnie++ bonnie++
            need hdparm hdparm
            need mkfs.ext4 e2fsprogs
            need mkfs.xfs xfsprogs
            need mkfs.btrfs btrfs-progs
            need losetup mount
            need mdadm mdadm
            need modprobe kmod
            need '/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf' fonts-dejavu-core
            ;;
        demo)
            need fio fio
            need nbdcopy libnbd-bin
            need mkfs.ext4 e2fsprogs
            need losetup mount
            need xz xz-utils
            need '/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf' fonts-dejavu-core
            need '/usr/src/linux-source-*.tar.xz' linux-source-6.1
            ;;
        bench)
            need fio fio
            need nbdkit nbdkit
            need nbdfuse libnbd-bin
            need fusermount3 fuse3
            need qemu-nbd qemu-utils
            need qemu-storage-daemon qemu-system-common
            need valgrind valgrind
            need chromium chromium
            need '/usr/lib/*/libisal.so.2' libisal2
            need losetup mount
            need '/usr/lib/llvm-*/lib/libclang.so' libclang-dev # bindings of rublk
            ;;
        *)
            echo "setup.sh: unknown purpose '$purpose': build, test, foreign, guest, kernels, ceph, lab, demo or bench" >&2
            exit 2
            ;;
    esac
done

if [ -z "$wanted" ]; then
    install_python
    exit 0
fi
if [ "$(id -u)" = 0 ]; then
    as_root=''
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root='sudo'
else
    echo "These Debian packages are missing, and only root can install them:" >&2
    echo "   $wanted" >&2
    echo "As root: apt-get update && apt-get install --no-install-recommends$wanted" >&2
    exit 1
fi
echo "installing:$wanted"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -q -q
# shellcheck disable=SC2086 # the list is split on purpose
$as_root apt-get install -q -y --no-install-recommends $wanted >/dev/null
install_python
