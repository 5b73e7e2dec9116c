# A thin front: what is done is in scripts/ and in cargo.

CARGO ?= cargo
FLAGS ?= --locked
# What boots a real kernel for the interop tests; they are skipped without it.
export KLAB ?= $(or $(shell command -v klab),$(wildcard $(CURDIR)/../shared/klab/klab))

.PHONY: all build install uninstall deb demo quick check deny test only steady slow-tests nightly reproduce \
    reproduce-document interop foreign guest ceph lab-smoke sim fuzz soak soak-memory soak-kills soak-cuts bench clean

all: build

# `release` builds soonest; `small` optimises each program as a whole, for its size.
PROFILE ?= release
LINKED = $(if $(filter small,$(PROFILE)),RUSTFLAGS="$$RUSTFLAGS $$(scripts/link-flags.sh)")
build:
	@scripts/setup.sh build
	$(LINKED) $(CARGO) build $(FLAGS) --profile $(PROFILE) --package braid --package braid-service
	@echo 'built with the profile $(PROFILE): target/$(PROFILE)/braid, target/$(PROFILE)/braid-volume'

# What was built, to PREFIX below DESTDIR, and away again. As root nothing is compiled: `make build` first.
export PREFIX DESTDIR MOST
install uninstall: export BINARY := $(or $(BINARY),$(CURDIR)/target/$(PROFILE)/braid)
install uninstall:
	@scripts/install.sh $@

# A Debian package of it, in target/ (docs/install.md). MOST bounds the size of its programs, in bytes.
deb: PACKED = $(or $(BINARY),target/$(PROFILE)/braid)
deb: build
	@scripts/size.sh '$(dir $(PACKED))'
	@BINARY='$(PACKED)' scripts/deb.sh

# The main job on real data: a few minutes, in a temporary folder.
demo:
	@scripts/setup.sh build demo
	$(CARGO) build $(FLAGS) --release --package braid --package braid-service
	@scripts/demo.sh

TARGET = $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)

# The test programs, built once for all targets below: other features would build the engine again.
# crates/runner runs them beside each other, and `$(RUN) TEXT…` those whose package, target and name contain a TEXT.
TESTS = $(TARGET)/tests.json
BUILD_TESTS = $(CARGO) test $(FLAGS) --workspace --message-format json-render-diagnostics --no-run
# Of the programs, `braid` alone has unit tests: the other twenty are not linked once more for none.
WITH_TESTS = --lib --bin braid --test '*' --examples
RUN = $(TARGET)/debug/braid-runner --messages $(TESTS) --times $(TARGET)/test-times.json

# What to run before each commit, in some minutes: formatting, house rules, unit tests, some seeds, metadata.
QUICK = --lib --bin braid --test whole --test metadata --test runs
quick: export BRAID_SEEDS = 200
quick: TESTS = $(TARGET)/quick.json
quick:
	@scripts/setup.sh build test
	$(CARGO) fmt --all --check
	@mkdir -p $(TARGET)
	$(BUILD_TESTS) $(QUICK) >$(TESTS)
	$(RUN) --skip control_body --skip 'braid metadata' --skip 'runs each_way'
	$(RUN) 'braid metadata golden' 'braid metadata creation'

# Formatting, clippy, documentation and dependencies. fuzz/ is checked and never linked, so it needs no C++
# compiler: a path in CUSTOM_LIBFUZZER_PATH keeps libfuzzer-sys from building its library.
# Module headers link to private items, for readers of the code. With the examples, cargo chooses the dependencies' features
# as clippy does, and builds none of them again.
DOC = --deny warnings --allow rustdoc::private-intra-doc-links
check:
	@scripts/setup.sh build
	$(CARGO) fmt --all --check
	CUSTOM_LIBFUZZER_PATH=/dev/null $(CARGO) clippy $(FLAGS) --workspace --all-targets -- --deny warnings
	RUSTDOCFLAGS='$(DOC)' $(CARGO) doc $(FLAGS) --quiet --workspace --exclude braid-fuzz --no-deps \
	    --document-private-items --lib --bins --examples
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
	    $(CARGO) deny --log-level error --locked check bans licenses sources; \
	else \
	    echo 'skipped: cargo deny is not installed (`make deny` installs it). Licences, sources and versions' \
	        'are checked by crates/tidy; texts of licences were not read'; \
	fi

# As in `make check`, with the advisories of RustSec, which are fetched. Building cargo-deny takes minutes.
deny:
	@$(CARGO) deny --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-deny --version 0.20.2
	$(CARGO) deny --locked check

# Everything that must hold. The limit of the whole run, in seconds, is several times what it takes on two cores;
# each test has a limit of its own in tests/run.toml.
test: check $(TESTS)
	timeout --kill-after 30 3300 $(RUN) --whole
	$(CARGO) test $(FLAGS) --workspace --doc

# Not a file that make knows the age of: cargo does.
.PHONY: $(TESTS)
$(TESTS):
	@scripts/setup.sh build test
	@mkdir -p $(TARGET)
	$(BUILD_TESTS) $(WITH_TESTS) >$@

# Some tests, and what they print: make only TEST='braid-sim whole a_seed_is_a_run'
only: $(TESTS)
	$(RUN) --show '$(or $(TEST),$(error say which: make only TEST=TEXT))'

# The slowest tests of the last run, by wall time and by processor time.
slow-tests:
	@$(RUN) --slow

# Every test, or those of TEST, ROUNDS times beside two busy loops: none may fail once.
ROUNDS ?= 20
steady: $(TESTS)
	$(RUN) --rounds $(ROUNDS) --busy 2 $(if $(TEST),'$(TEST)')

# All that takes hours, and at its end one table: results, times, and what was skipped for which reason.
nightly:
	@scripts/nightly.sh

# The device models beside published figures. Fails where docs/models.md has a better score, or is not of
# these models; `make reproduce-document` writes its tables, and a worse score into the difference.
reproduce:
	@scripts/setup.sh build
	$(CARGO) run $(FLAGS) --quiet --package braid-reproduce
	@$(MAKE) only TEST='braid-reproduce document'

reproduce-document: export BRAID_MODELS_DOCUMENT = $(CURDIR)/docs/models.md
reproduce-document: $(TESTS)
	$(RUN) 'braid-reproduce document'

# braid and the kernel's md on the same members, every level and version: some ten minutes, and forty where
# kernels are emulated. The table of what held goes into docs/interop.md. (`make test` has a few of these arrays.)
interop: export BRAID_INTEROP = all
interop: export BRAID_INTEROP_TABLE = $(CURDIR)/docs/interop.md
interop:
	@scripts/setup.sh build test kernels
	@scripts/kernels.sh
	@$(MAKE) only TEST='braid interop'
	@$(MAKE) only TEST='braid rescue recipes'
	@sed -n '/table: begin/,/table: end/p' $(BRAID_INTEROP_TABLE)

# Images of a real Ceph cluster, in memory and on the loopback: some ten minutes, 6 GiB.
ceph: export BRAID_CEPH = 1
ceph:
	@scripts/setup.sh build test ceph
	@$(MAKE) only TEST='braid ceph'

# A machine that boots from a volume, loses a disk, and boots again; and one with Debian's systemd and udev,
# whose volumes come and go. Real kernels in emulated machines: half an hour on two cores without kvm. Fetches
# the kernel and the Debian, as root; nothing of them is installed. BINARY is installed there, if it is given.
guest: export BRAID_GUEST = $(CURDIR)/target/guest
guest:
	@scripts/setup.sh build test guest
	@scripts/guest-tree.sh $(BRAID_GUEST)
	@$(MAKE) only TEST='braid systemd'

# Suites of nbd-server and of libnbd, compiled as they are, against our server. Fetches their sources by apt.
foreign: $(TESTS)
	@scripts/setup.sh foreign
	@scripts/foreign.sh $(TARGET)/foreign $(TARGET)/debug/braid

# Every preset of the laboratory at a small scale on modelled members, reports included: a quarter
# of an hour or more. (`make test` has a part of each.) Screenshots and reports stay in target/tmp.
lab-smoke: export BRAID_LAB_SMOKE = all
lab-smoke:
	@scripts/setup.sh build test lab
	@$(MAKE) only TEST='braid laboratory'

# The whole stack on a virtual clock: seeds that change with the commit, those that once failed, and
# every planted bug. (`make test` has 2,000 seeds and all planted bugs.)
SEEDS ?= 20000
sim: export BRAID_SEEDS = $(SEEDS)
sim:
	$(CARGO) test $(FLAGS) --release --package braid-sim --test whole --test canaries

# Fresh seeds for so many minutes; those that fail are kept in testdata/seeds/failed.txt.
MINUTES ?= 60
soak:
	@scripts/soak.sh $(MINUTES)

# The fuzzers' targets with libFuzzer, which sees what an input reached: so many seconds for each, one
# after the other. Needs a nightly compiler and cargo-fuzz.
LONG ?= 300
fuzz:
	@scripts/fuzz.sh $(LONG)

# Side by side with peers; each prints a table of ratios. See bench/README.md.
bench:
	@scripts/setup.sh build bench
	$(CARGO) build $(FLAGS) --release --package braid --package braid-service --package braid-bench
	target/release/parity
	target/release/engine
	target/release/peers-nbd
	target/release/remote
	target/release/modelled
	target/release/recovery
	target/release/attach
	target/release/vhost
	target/release/fair
	target/release/cache
	@command -v rublk >/dev/null || $(CARGO) install --locked rublk --version 0.2.15
	target/release/beside-md
	target/release/laboratory
	@command -v gungraun-runner >/dev/null || $(CARGO) install --locked gungraun-runner --version 0.20.0
	$(CARGO) bench $(FLAGS) --package braid-bench --bench engine_instructions
	$(CARGO) bench $(FLAGS) --package braid-bench --bench parity_instructions

# A file system on an attached volume, volume and writers in one memory cgroup: 200 rounds over each
# level, as root. (`make test` has two of each.)
soak-memory: export BRAID_MEMORY_ROUNDS ?= 200
soak-memory:
	@$(MAKE) only TEST='braid faults memory'

# SIGKILL in the middle of fio with verification, 50 times for each level over each export, as root.
# (`make test` has one of each.)
soak-kills: export BRAID_KILLS ?= 50
soak-kills:
	@$(MAKE) only TEST='braid faults kills'

# Power cuts under the real program, of so many volumes on each kind of member, as root. (`make test` has one of
# each level on each.)
soak-cuts: export BRAID_CUTS ?= 600
soak-cuts:
	@$(MAKE) only TEST='braid faults cuts'

clean:
	$(CARGO) clean
