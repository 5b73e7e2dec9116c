#!/bin/sh
# Runs whenever devices have settled, until every volume is up. How often before a volume is started
# without its missing members: braid.wait=SECONDS on the kernel's command line, 15 without it.

type getarg >/dev/null 2>&1 || . /lib/dracut-lib.sh

wait_for=$(getarg braid.wait=)
wait_for=${wait_for:-15}
now=$(cut -d. -f1 /proc/uptime)
[ -e /run/braid-since ] || echo "$now" >/run/braid-since
since=$(cat /run/braid-since)

while read -r name; do
    case $name in '' | '#'*) continue ;; esac
    [ -e "/dev/braid/$name" ] && continue
    degraded=''
    [ $((now - since)) -ge "$wait_for" ] && degraded=--degraded
    if device=$(braid up "$name" --attach fuse --root-storage $degraded 2>/run/braid-initramfs.log); then
        [ -e "/dev/braid/$name" ] && continue
        mkdir -p /dev/braid
        ln -s "$(echo "$device" | head -n 1)" "/dev/braid/$name"
    else
        info "braid: $(cat /run/braid-initramfs.log)"
    fi
done </etc/braid/initramfs
