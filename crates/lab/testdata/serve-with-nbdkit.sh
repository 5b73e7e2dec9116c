#!/bin/sh
# Stands in for `braid serve STACK --nbd unix:SOCKET`: the same words, memory behind them.
[ "$1" = serve ] && [ "$3" = --nbd ] || { echo "usage: serve STACK --nbd unix:SOCKET" >&2; exit 2; }
exec nbdkit memory 8M -f -U "${4#unix:}"
