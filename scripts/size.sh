#!/bin/sh
# Prints the size of what is installed, and bounds it: size.sh [FOLDER]
#
#   FOLDER  target/release  has braid and braid-volume
#   MOST    none            bytes that both may have together; a program of more is an error
set -eu
cd "$(dirname "$0")/.."
folder=${1:-target/release}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PREFIX=/usr DESTDIR=$work BINARY=$folder/braid LISTED=no scripts/install.sh install
command=$(stat -c %s "$work/usr/bin/braid")
volume=$(stat -c %s "$work/usr/libexec/braid/braid-volume")
both=$((command + volume))
echo "braid $command, braid-volume $volume, together $both bytes"
if [ -n "${MOST:-}" ] && [ "$both" -gt "$MOST" ]; then
    echo "size.sh: that is more than $MOST bytes; next: nm --size-sort --demangle $folder/braid | tail -100" >&2
    exit 1
fi
