#!/bin/sh
# Gives each target of fuzz/ to libFuzzer for so many SECONDS, one after the other, and prints a row of
# docs/durability.md's table for each: fuzz.sh SECONDS [TARGET…]
#
# What it learns stays in target/fuzz/corpus; the smallest inputs that reach an edge which the committed
# corpus does not are added to that: of 4 KiB at most, and not beyond 60 files. An input that fails is in
# fuzz/artifacts, and ends this with an error.
# Needs a nightly compiler, and cargo-fuzz (`cargo install --locked cargo-fuzz`).
set -eu
cd "$(dirname "$0")/../fuzz"
seconds=${1:?how many seconds for each target}
shift
[ $# -gt 0 ] || set -- superblock bitmap bad_blocks ppl stripe_log cache_log evidence samples array_start vhost nbd_session \
    nbd_client fuse_request stack_expression published trace fio_job control_body campaign tool_output
learnt=$PWD/../target/fuzz/corpus
small=$(mktemp -d)
trap 'rm -rf "$small"' EXIT
# What is fuzzed has no `unsafe` but the arenas of braid-mem, whose own tests go through them: no
# sanitizer, for the speed.
for target; do
    mkdir -p "$learnt/$target"
    log=$learnt/$target.log
    if ! cargo +nightly fuzz run --sanitizer none "$target" "$learnt/$target" \
        "corpus/$target" -- -max_total_time="$seconds" -max_len=70000 -timeout=30 \
        -rss_limit_mb=3000 -print_final_stats=1 >"$log" 2>&1; then
        tail -40 "$log" >&2
        echo "fuzz.sh: $target failed, see $log" >&2
        exit 1
    fi
    rm -rf "$small/found" "$small/new"
    mkdir "$small/found"
    cp -r "corpus/$target" "$small/new"
    find "$learnt/$target" -type f -size -5k -exec cp -t "$small/found" {} +
    cargo +nightly fuzz run --sanitizer none "$target" "$small/new" "$small/found" \
        -- -set_cover_merge=1 -use_counters=0 >"$log.merge" 2>&1
    find "$small/new" -type f -printf '%s %p\n' | sort -n | while read -r _ file; do
        [ -e "corpus/$target/${file##*/}" ] && continue
        [ "$(find "corpus/$target" -type f | wc -l)" -lt 60 ] || break
        cp "$file" "corpus/$target/"
    done
    executions=$(sed -n 's/^stat::number_of_executed_units: //p' "$log")
    edges=$(sed -n 's/.*DONE *cov: \([0-9]*\).*/\1/p' "$log")
    files=$(find "corpus/$target" -type f | wc -l)
    bytes=$(find "corpus/$target" -type f -printf '%s\n' | awk '{ all += $1 } END { print all }')
    echo "| \`$target\` | $executions | $edges | $files files, $((bytes / 1024)) KiB |"
done
