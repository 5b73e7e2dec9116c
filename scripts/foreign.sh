#!/bin/sh
# NBD test suites of other projects against this server: foreign.sh FOLDER BRAID
#
#   nbd-tester-client   of nbd (nbd-server's own tests), from Debian's source package nbd, or a checkout in $NBD_SOURCE
#   aio-parallel, aio-parallel-load, synch-parallel   of libnbd, from Debian's source package libnbd
#
# Sources are fetched into FOLDER by apt, with a list of its own, and kept there. Each case has a fresh volume in memory
# or on a file. What libnbd's other tests start is a server of their own choice, so they say nothing of this one.
set -eu

mkdir -p "$1"
folder=$(cd "$1" && pwd)
braid=$2
passed=0
failed=0
work=$(mktemp -d)
server=
stop() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    server=
}
trap 'stop; rm -rf "$work"' EXIT

fetch() { # PACKAGE: its sources in FOLDER/PACKAGE
    [ ! -d "$folder/$1" ] || return 0
    mkdir -p "$folder/lists/partial"
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb-src [signed-by=$keys] http://deb.debian.org/debian bookworm main" >"$folder/sources.list"
    (
        cd "$folder"
        set -- "$1" -q -q -o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=/dev/null \
            -o "Dir::State::lists=$folder/lists" -o "Dir::Cache=$folder" -o APT::Sandbox::User=root
        package=$1
        shift
        apt-get "$@" update && apt-get "$@" --download-only source "$package" &&
            dpkg-source --extract "$package"_*.dsc "$package" ||
            # Mirrors may have lost it.
            { [ "$package" = nbd ] && timeout 60 git clone --depth 1 https://github.com/NetworkBlockDevice/nbd nbd; }
    ) >"$folder/$1.log" 2>&1
}

# Serves STACK at $work/socket, and waits until it is there.
serve() {
    rm -f "$work/socket" "$work/ready"
    mkfifo "$work/ready"
    "$braid" serve "$1" --name "$2" --nbd "unix:$work/socket" >"$work/ready" 2>"$work/errors" &
    server=$!
    read -r _ <"$work/ready" || {
        cat "$work/errors" >&2
        exit 1
    }
}

verdict() { # NAME COMMAND…
    name=$1
    shift
    if timeout 120 "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
        echo "ok: $name"
    else
        failed=$((failed + 1))
        echo "FAILED: $name"
        # It counts its requests on one line.
        tail -n 3 "$work/log" | tr '\r' '\n' | tail -n 3 | cut -c 1-300
        cat "$work/errors"
    fi
    stop
}

tester() { # OPTION…
    serve 'raid0(ram(32M), ram(32M))' export
    verdict "nbd-tester-client $*" "$folder/nbd-tester-client" -N export -u "$work/socket" "$@"
}

nbd=${NBD_SOURCE:-$folder/nbd}
if [ -n "${NBD_SOURCE:-}" ] || fetch nbd; then
    tests=$nbd/tests/run
    mkdir -p "$work/nbd"
    printf '#define %s\n' 'HAVE_MKSTEMP 1' 'HAVE_FDATASYNC 1' 'NBD_LFS 1' 'VERSION "0"' >"$work/nbd/config.h"
    # shellcheck disable=SC2046 # several words
    cc -w -O1 -D_GNU_SOURCE "-I$work/nbd" "-I$nbd" $(pkg-config --cflags glib-2.0) "$tests/nbd-tester-client.c" \
        "$nbd/cliserv.c" -o "$folder/nbd-tester-client" $(pkg-config --libs glib-2.0)
    tester
    tester -w
    tester -w -f
    tester -o
    tester -h
    tester -l
    tester -i -t "$tests/integrity-test.tr"
    tester -i -t "$tests/integrityhuge-test.tr"
else
    echo 'skipped: the sources of Debian'\''s package nbd cannot be fetched: NBD_SOURCE=FOLDER names a checkout of them'
fi

if fetch libnbd; then
    : >"$work/config.h"
    for test in aio-parallel aio-parallel-load synch-parallel; do
        cc -w -O1 "-I$work" "-I$folder/libnbd/common/include" "$folder/libnbd/tests/$test.c" -o "$folder/$test" \
            -lnbd -lpthread
        # What they expect to be there is what nbdkit's pattern plugin has: each 8 bytes are their offset.
        size=$(sed -n 's/^#define EXPORTSIZE (\([0-9]*\)\*1024\*1024)$/\1/p' "$folder/libnbd/tests/$test.c")
        python3 -c 'import struct, sys
sys.stdout.buffer.write(b"".join(struct.pack(">Q", at) for at in range(0, int(sys.argv[1]) << 20, 8)))' \
            "$size" >"$work/pattern.img"
        serve "$work/pattern.img" export
        verdict "libnbd $test" "$folder/$test" "$work/socket"
    done
else
    echo 'skipped: the sources of Debian'\''s package libnbd cannot be fetched'
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
