#!/bin/sh
# Everything that takes too long for each commit, one step after the other, and one table at the end:
# nightly.sh [STEP…]
#
# A step is a target of the Makefile, perhaps with more rounds than its default. All steps run, also after one that
# failed. The table has a row a step: its result, its time, tests that passed and failed; below it stands what was
# skipped, for which reason. It is printed, too, when the run is ended before its time (SIGINT, SIGTERM). Logs are in
# target/nightly. The exit status is 0 only if every step ran to its end and succeeded, 2 for a name that is no step.
set -eu
cd "$(dirname "$0")/.."

all='test inputs hostile members fuzz seeds soak crashes caches restarts geometries recipes reproduce presets interop foreign guest ceph memory kills cuts deny'
chosen=${*:-$all}
for name in $chosen; do
    case " $all " in *" $name "*) continue ;; esac
    echo "nightly.sh: $name is no step; next: one of $all" >&2
    exit 2
done
logs=$PWD/target/nightly
mkdir -p "$logs"
rm -f "$logs"/*
failed=0
under_way=''

row() { # NAME RESULT
    seconds=$(($(date +%s) - began))
    # Of braid-runner, and of cargo test.
    counts=$(awk '/^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3; any = 1 }
        /^test result: .*[0-9]+ passed; [0-9]+ failed/ { cargo_passed += $4; cargo_failed += $6; cargo = 1 }
        END { if (any) print passed " passed, " failed " failed"
            else if (cargo) print cargo_passed " passed, " cargo_failed " failed" }' "$logs/$1.log")
    printf '| %-10s | %-7s | %3d min %2d s | %s |\n' "$1" "$2" $((seconds / 60)) $((seconds % 60)) "$counts" >>"$logs/table"
    sed -n "s/^skipped: /$1: /p" "$logs/$1.log" | sort -u >>"$logs/skipped"
}

report() {
    trap - EXIT
    if [ -n "$under_way" ]; then
        failed=1
        # make ends its own; of a function here it is the children that work.
        kill $(ps -o pid= --ppid "$pid") "$pid" 2>/dev/null || true
        wait "$pid" || true
        row "$under_way" ended
    fi
    echo
    echo '| step       | result  | time         | tests |'
    echo '|------------|---------|--------------|-------|'
    for name in $chosen; do
        grep "^| $name " "$logs/table" 2>/dev/null || {
            failed=1
            printf '| %-10s | %-7s |              |       |\n' "$name" none
        }
    done
    if [ -s "$logs/skipped" ]; then
        echo
        echo 'skipped:'
        cat "$logs/skipped"
    fi
    exit "$failed"
}
trap report EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

step() { # NAME COMMAND…
    name=$1
    shift
    case " $all " in *" $name "*) ;; *) echo "nightly.sh: $name is not in the list of steps" >&2; exit 2 ;; esac
    case " $chosen " in *" $name "*) ;; *) return 0 ;; esac
    echo "$(date +%H:%M) $name: $*"
    began=$(date +%s)
    under_way=$name
    # As a child, so that a signal ends the wait.
    "$@" </dev/null >"$logs/$name.log" 2>&1 &
    pid=$!
    status=0
    wait "$pid" || status=$?
    under_way=''
    case $status in
        0) result=ok ;;
        77) result=skipped ;; # the log says why
        *)
            result=FAILED
            failed=1
            tail -20 "$logs/$name.log"
            ;;
    esac
    row "$name" "$result"
}

long_fuzz() { # libFuzzer needs a nightly compiler, which a machine may lack
    if cargo +nightly fuzz --version >/dev/null 2>&1; then
        make fuzz
    else
        echo 'skipped: cargo +nightly fuzz is not installed: cargo install --locked cargo-fuzz'
        return 77
    fi
}

# `set -e` does not hold within a function whose status is asked for.
crashes() {
    cargo build --locked --release --package braid-sim &&
        target/release/braid-sim failing --loads "${LOADS:-20000}" &&
        target/release/braid-sim exhaust --points "${POINTS:-2000000}" &&
        target/release/braid-sim rot --lives "${LIVES:-20000}"
}

caches() { # crashes, exhausted memory, failures of every request, flipped bits
    for test in what_was_flushed small_logs short::; do
        BRAID_SEEDS=${CACHES:-600} make only TEST="braid-cache write_back $test" || return
    done
}

recipes() {
    scripts/setup.sh kernels && BRAID_RECIPES=${RECIPES:-10} make only TEST='braid rescue recipes'
}

advisories() { # RustSec's are fetched, which a machine may not be able to
    cargo deny --version >/dev/null 2>&1 || cargo install --locked cargo-deny --version 0.20.2 || return
    if cargo deny fetch db; then
        cargo deny --locked check
    else
        echo 'skipped: the advisories of RustSec cannot be fetched from here'
        cargo deny --locked check bans licenses sources
    fi
}

step test make test
step inputs env "BRAID_FUZZ_TIMES=${FUZZ:-60}" make only TEST='braid-mutate fuzz'
step hostile env "BRAID_HOSTILE_TIMES=${HOSTILE:-100}" make only TEST='braid-mutate hostile'
step members env "BRAID_HOSTILE_TIMES=${HOSTILE:-100}" make only TEST='braid hostile_members'
step fuzz long_fuzz
step seeds make sim "SEEDS=${SEEDS:-200000}"
step soak make soak "MINUTES=${MINUTES:-60}"
step crashes crashes
step caches caches
step restarts env "BRAID_REMOTE_RESTARTS=${RESTARTS:-10000}" make only TEST='braid remote_members restarts'
step geometries env "BRAID_SEEDS=${GEOMETRIES:-1000}" make only TEST='braid-rescue solve what_is_decided'
step recipes recipes
step reproduce make reproduce
step presets make lab-smoke
step interop make interop
step foreign make foreign
step guest make guest
step ceph make ceph
step memory make soak-memory
step kills make soak-kills
step cuts make soak-cuts
step deny advisories
