#!/bin/sh
# Runs fresh seeds of the simulator for MINUTES, and keeps those that fail in
# testdata/seeds/failed.txt, which every run of CI goes through.
set -eu
cd "$(dirname "$0")/.."
minutes=${1:?how many minutes}
cargo build --locked --release --package braid-sim
commit=$(git rev-parse --short HEAD)
exec target/release/braid-sim --minutes "$minutes" --most 1000 --keep "$commit"
