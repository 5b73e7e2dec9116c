#!/bin/busybox sh
# A guest's init, on the root file system: it says what it sees, does what the kernel's command line
# has in braid.do, and goes.
export PATH=/usr/bin:/bin
say() { echo "guest: $*" >/dev/console; }
in_sync() {
    braid status root --json | busybox tr -d '\n ' | busybox sed 's/.*"in_sync":\[\([a-z,]*\)\].*/\1/'
}

busybox mount -t proc proc /proc 2>/dev/null
boot=$(($(busybox cat /boots 2>/dev/null || echo 0) + 1))
echo "$boot" >/boots
say "boot $boot"
say "root $(busybox awk '$2 == "/" {print $1 " " $3}' /proc/mounts | busybox tail -n 1)"
say "in_sync $(in_sync)"
process=$(braid status root --json | busybox tr -d '\n ' | busybox sed 's/.*"pid":\([0-9]*\).*/\1/')
say "argv0 $(busybox tr '\0' '\n' <"/proc/$process/cmdline" | busybox head -n 1)"
case $(busybox cat /proc/cmdline) in
*braid.do=re-add*)
    case $(in_sync) in
    # The volume's policy may have done it meanwhile.
    *false*) braid member re-add root /dev/disk/by-id/virtio-a >/dev/console 2>&1 ;;
    esac
    for second in $(busybox seq 60); do
        [ "$(in_sync)" = true,true ] && break
        busybox sleep 1
    done
    say "later $(in_sync)"
    ;;
esac
busybox sync
busybox mount -o remount,ro /
say "ro $?"
# Superblocks say "clean" when nothing was written for a moment.
busybox sleep 2
busybox poweroff -f
