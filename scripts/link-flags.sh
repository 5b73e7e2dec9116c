#!/bin/sh
# Flags of rustc by which a linker makes programs small: link-flags.sh
#
# rustc's own linker, which is the default on x86-64 only, has functions of equal machine code share one body.
set -eu
[ "$(uname -m)" != x86_64 ] || echo '-Clink-arg=-Wl,--icf=all'
