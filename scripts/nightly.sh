#!/bin/sh
# Everything that takes too long for each commit, one step after the other, and one table at the end:
# nightly.sh [STEP…]
#
# A step is a target of the Makefile, perhaps with more rounds than its default. All steps run, also after one that
# failed. The table has a row a step: its result, its time, tests that passed and failed; below it stands what was
# skipped, for which reason. Logs are in target/nightly. The exit status is 1 if a step failed.
set -eu
cd "$(dirname "$0")/.."

logs=$PWD/target/nightly
mkdir -p "$logs"
rm -f "$logs"/*
failed=0

step() { # NAME COMMAND…
    name=$1
    shift
    case " $chosen " in *" $name "*) ;; *) return 0 ;; esac
    echo "$(date +%H:%M) $name: $*"
    began=$(date +%s)
    result=ok
    if ! "$@" </dev/null >"$logs/$name.log" 2>&1; then
        result=FAILED
        failed=1
        tail -20 "$logs/$name.log"
    fi
    seconds=$(($(date +%s) - began))
    counts=$(awk '/^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3; any = 1 }
        END { if (any) print passed " passed, " failed " failed" }' "$logs/$name.log")
    printf '| %-10s | %-6s | %3d min %2d s | %s |\n' "$name" "$result" $((seconds / 60)) $((seconds % 60)) "$counts" \
        >>"$logs/table"
    sed -n "s/^skipped: /$name: /p" "$logs/$name.log" | sort -u >>"$logs/skipped"
}

long_fuzz() { # libFuzzer needs a nightly compiler, which a machine may lack
    if cargo +nightly fuzz --version >/dev/null 2>&1; then
        make fuzz
    else
        echo 'skipped: cargo +nightly fuzz is not installed: cargo install --locked cargo-fuzz'
    fi
}

crashes() { # steps run where `set -e` says nothing: each command has to be asked
    cargo build --locked --release --package braid-sim || return 1
    target/release/braid-sim failing --loads "${LOADS:-20000}" || return 1
    target/release/braid-sim exhaust --points "${POINTS:-2000000}" || return 1
    target/release/braid-sim rot --lives "${LIVES:-20000}"
}

advisories() { # RustSec's are fetched, which a machine may not be able to
    cargo deny --version >/dev/null 2>&1 || cargo install --locked cargo-deny --version 0.20.2
    if cargo deny fetch db; then
        cargo deny --locked check
    else
        echo 'skipped: the advisories of RustSec cannot be fetched from here'
        cargo deny --locked check bans licenses sources
    fi
}

chosen=${*:-test inputs hostile members fuzz seeds soak crashes reproduce presets interop foreign guest memory kills cuts deny}
step test make test
step inputs env "BRAID_FUZZ_TIMES=${FUZZ:-60}" make only TEST='braid-mutate fuzz'
step hostile env "BRAID_HOSTILE_TIMES=${HOSTILE:-100}" make only TEST='braid-mutate hostile'
step members env "BRAID_HOSTILE_TIMES=${HOSTILE:-100}" make only TEST='braid hostile_members'
step fuzz long_fuzz
step seeds make sim "SEEDS=${SEEDS:-200000}"
step soak make soak "MINUTES=${MINUTES:-60}"
step crashes crashes
step reproduce make reproduce
step presets make lab-smoke
step interop make interop
step foreign make foreign
step guest make guest
step memory make soak-memory
step kills make soak-kills
step cuts make soak-cuts
step deny advisories

echo
echo '| step       | result | time         | tests |'
echo '|------------|--------|--------------|-------|'
cat "$logs/table"
if [ -s "$logs/skipped" ]; then
    echo
    echo 'skipped:'
    cat "$logs/skipped"
fi
exit "$failed"
