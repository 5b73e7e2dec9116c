#!/bin/sh
# ceph-loopback.sh: a throw-away Ceph cluster on the loopback: one monitor, one manager, three OSDs in RAM.
# Each client and daemon has a key: client.admin may do all, client.disk may use the images of the pool rbd. DIR/keyring has both.
#
#   ceph-loopback.sh start DIR [PORT]   makes the cluster in DIR and waits until it is clean; PORT (40900) and PORT+1
#   ceph-loopback.sh kill DIR OSD       ends an OSD at once
#   ceph-loopback.sh osd DIR OSD        starts an OSD; what it had in RAM is gone, so its peers fill it again
#   ceph-loopback.sh stop DIR           ends all daemons by their own ids and removes DIR
#
# Packages of Debian: ceph-mon ceph-osd ceph-mgr ceph-common. OSD_BYTES is the room of an OSD (2 GiB).
set -eu
verb=${1:?start, kill, osd or stop} dir=${2:?a folder} bytes=${OSD_BYTES:-2147483648}
conf=$dir/ceph.conf

ask() { timeout 30 ceph -c "$conf" --connect-timeout 10 "$@"; }

# Starts a daemon in a session of its own and notes its id.
launch() {
	name=$1
	shift
	setsid "$@" -f -c "$conf" >"$dir/$name.out" 2>&1 </dev/null &
	echo $! >"$dir/$name.pid"
}

# Waits until a command succeeds.
until_true() {
	left=240
	until "$@" >/dev/null 2>&1; do
		left=$((left - 1))
		[ "$left" -gt 0 ] || { echo "ceph-loopback: gave up waiting for: $*" >&2; exit 1; }
		sleep 0.5
	done
}

all_up() { ask osd stat -f json | grep -q '"num_up_osds":3'; }
# The manager may have a pool of its own.
all_clean() { ask pg stat | grep -q '^\([0-9]*\) pgs: \1 active+clean;'; }

new_osd() {
	mkdir -p "$dir/osd.$1"
	[ -e "$dir/osd.$1/uuid" ] || cat /proc/sys/kernel/random/uuid >"$dir/osd.$1/uuid"
	uuid=$(cat "$dir/osd.$1/uuid")
	if [ ! -e "$dir/osd.$1/secret" ]; then
		key=$(ceph-authtool --gen-print-key)
		echo "{\"cephx_secret\": \"$key\"}" >"$dir/osd.$1/secret"
		printf '[osd.%s]\nkey = %s\n' "$1" "$key" >>"$dir/keyring"
	fi
	ask osd new "$uuid" "$1" -i "$dir/osd.$1/secret" >/dev/null
	ceph-osd -i "$1" -c "$conf" --mkfs --osd-uuid "$uuid" >"$dir/mkfs.$1" 2>&1
	launch "osd.$1" ceph-osd -i "$1"
}

# Ends a daemon of this cluster: the id is checked, it may belong to another process by now.
end() {
	file=$dir/$1.pid
	[ -e "$file" ] || return 0
	pid=$(cat "$file")
	if tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q -F -- "$conf"; then
		kill "-$2" "$pid" 2>/dev/null || true
		left=100
		while [ -e "/proc/$pid" ] && [ "$left" -gt 0 ]; do left=$((left - 1)); sleep 0.1; done
		[ ! -e "/proc/$pid" ] || kill -KILL "$pid" 2>/dev/null || true
	fi
	rm -f "$file"
}

start() {
	port=${1:-40900}
	mkdir -p "$dir/mon" "$dir/mgr" "$dir/run"
	fsid=$(cat /proc/sys/kernel/random/uuid)
	address="[v2:127.0.0.1:$port,v1:127.0.0.1:$((port + 1))]"
	cat >"$conf" <<CONF
[global]
fsid = $fsid
mon host = $address
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = $dir/keyring
auth allow insecure global id reclaim = false
run dir = $dir/run
admin socket = $dir/run/\$name.asok
log file = $dir/\$name.log
crash dir = $dir/run
osd pool default size = 2
osd pool default min size = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
[client]
log file = /dev/null
admin socket =
[mon]
mon data = $dir/mon
mon allow pool delete = true
mon data avail warn = 2
mon data avail crit = 1
mon warn on insecure global id reclaim allowed = false
[mgr]
mgr data = $dir/mgr
mgr initial modules =
[osd]
osd data = $dir/osd.\$id
osd objectstore = memstore
memstore device bytes = $bytes
osd class update on start = true
CONF
	monmaptool --create --clobber --fsid "$fsid" --addv a "$address" --set-min-mon-release pacific "$dir/monmap" >/dev/null
	ceph-authtool --create-keyring "$dir/keyring" --gen-key -n mon. --cap mon 'allow *' >/dev/null
	ceph-authtool "$dir/keyring" --gen-key -n client.admin --cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *' >/dev/null
	ceph-mon --mkfs -i a -c "$conf" --monmap "$dir/monmap" --keyring "$dir/keyring"
	launch mon ceph-mon -i a
	until_true ask mon stat
	ask auth get-or-create mgr.x mon 'allow profile mgr' osd 'allow *' >>"$dir/keyring"
	ask auth get-or-create client.disk mon 'profile rbd' osd 'profile rbd pool=rbd' >>"$dir/keyring"
	launch mgr ceph-mgr -i x
	for osd in 0 1 2; do new_osd "$osd"; done
	until_true all_up
	ask osd pool create rbd 8 8 replicated >/dev/null 2>&1
	ask osd pool application enable rbd rbd >/dev/null 2>&1
	until_true all_clean
}

case $verb in
start) start "${3:-}" ;;
kill) end "osd.${3:?an OSD}" KILL ;;
osd) new_osd "${3:?an OSD}" ;;
stop)
	for name in osd.0 osd.1 osd.2 mgr mon; do end "$name" TERM; done
	rm -rf "$dir"
	;;
*)
	sed -n 2,11p "$0" >&2
	exit 2
	;;
esac
