#!/bin/sh
# Says which kernels klab boots here, and prepares those that take seconds if there is none: kernels.sh
#
# $KLAB is klab; `klab prepare uml612` compiles the fastest one in some minutes.
set -eu

if [ ! -x "${KLAB:-}" ]; then
    echo 'kernels.sh: there is no klab: $KLAB names no program that boots kernels' >&2
    exit 1
fi
if ! "$KLAB" info 2>/dev/null | grep -q '^ *\(uml612\|uml\|qemu\|qemu61\) .*kernel'; then
    echo 'kernels.sh: no kernel is prepared: klab prepare'
    "$KLAB" prepare
fi
"$KLAB" info
