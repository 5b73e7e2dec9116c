# A thin front: what is done is in scripts/ and in cargo.

CARGO ?= cargo
FLAGS ?= --locked
# Seconds of changed inputs for each target of the fuzzers.
FUZZ ?= 60
# What boots a real kernel for the interop tests; they are skipped without it.
export KLAB ?= $(or $(shell command -v klab),$(wildcard $(CURDIR)/../shared/klab/klab))

.PHONY: all build install uninstall deb demo check deny test reproduce reproduce-document interop guest lab-smoke sim fuzz soak soak-memory soak-kills bench clean

all: build

build:
	@scripts/setup.sh build
	$(CARGO) build $(FLAGS) --release --package braid

# What was built, to PREFIX below DESTDIR, and away again. As root nothing is compiled: `make build` first.
export PREFIX DESTDIR BINARY
install uninstall:
	@scripts/install.sh $@

# A Debian package of it, in target/ (docs/install.md).
deb: build
	@scripts/deb.sh

# The main job on real data: a few minutes, in a temporary folder.
demo:
	@scripts/setup.sh build demo
	$(CARGO) build $(FLAGS) --release --package braid
	@scripts/demo.sh

# The rules of the house (crates/tidy), the documentation's links, and whether fuzz/ still compiles: below a
# minute where the workspace is built. A check of fuzz/ links nothing, so it needs no C++ compiler:
# a path in CUSTOM_LIBFUZZER_PATH keeps libfuzzer-sys from building its library.
# Headers speak of private items, to those who read the code.
DOC = --deny warnings --allow rustdoc::private-intra-doc-links
TARGET = $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
check:
	@scripts/setup.sh build
	$(CARGO) fmt --all --check
	$(CARGO) test $(FLAGS) --quiet --package braid-tidy
	RUSTDOCFLAGS='$(DOC)' $(CARGO) doc $(FLAGS) --quiet --workspace --no-deps \
	    --document-private-items
	@[ -e fuzz/Cargo.lock ] || cp Cargo.lock fuzz/Cargo.lock
	cd fuzz && CUSTOM_LIBFUZZER_PATH=/dev/null $(CARGO) check --quiet --all-features --target-dir '$(TARGET)/fuzz-check'
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
	    $(CARGO) deny --log-level error --locked check bans licenses sources; \
	else \
	    echo 'skipped: cargo deny is not installed (`make deny` installs it). Licences, sources and versions' \
	        'were held by crates/tidy; texts of licences were not read'; \
	fi

# As in `make check`, with the advisories of RustSec, which are fetched. Building cargo-deny takes minutes.
deny:
	@$(CARGO) deny --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-deny --version 0.20.2
	$(CARGO) deny --locked check

# Everything that must hold. The limits, in seconds, are several times what it takes on two cores: a test
# that does not end is a failure, and the last lines say which it is.
test: check
	@scripts/setup.sh build test
	$(CARGO) clippy $(FLAGS) --workspace --all-targets -- --deny warnings
	BRAID_FUZZ_SECONDS=$(FUZZ) timeout --kill-after 30 3300 $(CARGO) test $(FLAGS) --workspace
	timeout --kill-after 30 900 $(CARGO) test $(FLAGS) --package braid-sim --features canary --test canaries
	timeout --kill-after 30 900 $(CARGO) test $(FLAGS) --package braid-cache --features canary --test canaries

# The device models beside published figures. Fails where docs/models.md has a better score, or is not of
# these models; `make reproduce-document` writes its tables, and a worse score into the difference.
reproduce:
	@scripts/setup.sh build
	$(CARGO) run $(FLAGS) --quiet --package braid -- lab reproduce
	$(CARGO) test $(FLAGS) --quiet --package braid --test reproduce document

reproduce-document: export BRAID_MODELS_DOCUMENT = $(CURDIR)/docs/models.md
reproduce-document:
	@scripts/setup.sh build
	$(CARGO) test $(FLAGS) --quiet --package braid --test reproduce document

# braid and the kernel's md on the same members, every level and version: some ten minutes, and forty where
# kernels are emulated. The table of what held goes into docs/interop.md. (`make test` has a few of these arrays.)
interop: export BRAID_INTEROP = all
interop: export BRAID_INTEROP_TABLE = $(CURDIR)/docs/interop.md
interop:
	@scripts/setup.sh build test
	$(CARGO) test $(FLAGS) --package braid --test interop -- --nocapture
	@sed -n '/table: begin/,/table: end/p' $(BRAID_INTEROP_TABLE)

# A machine that boots from a volume, loses a disk, and boots again; and one with Debian's systemd and udev,
# whose volumes come and go. Real kernels in emulated machines: half an hour on two cores without kvm. Fetches
# the kernel and the Debian, as root; nothing of them is installed. BINARY is installed there, if it is given.
guest: export BRAID_GUEST = $(CURDIR)/target/guest
guest:
	@scripts/setup.sh build test guest
	@scripts/guest-tree.sh $(BRAID_GUEST)
	$(CARGO) test $(FLAGS) --package braid --test systemd -- --nocapture --test-threads 1

# Every preset of the laboratory at a small scale on modelled members, reports included: a quarter
# of an hour or more. (`make test` has a part of each.) Screenshots and reports stay in target/tmp.
lab-smoke: export BRAID_LAB_SMOKE = all
lab-smoke:
	@scripts/setup.sh build test lab
	$(CARGO) test $(FLAGS) --package braid --test laboratory -- --nocapture

# The whole stack on a virtual clock: seeds that change with the commit, those that once failed, and
# every planted bug. (`make test` has 2,000 seeds and all planted bugs.)
SEEDS ?= 20000
sim: export BRAID_SEEDS = $(SEEDS)
sim:
	$(CARGO) test $(FLAGS) --release --package braid-sim --features canary --test whole --test canaries

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
	$(CARGO) build $(FLAGS) --release --package braid --package braid-bench
	target/release/parity
	target/release/engine
	target/release/peers-nbd
	target/release/modelled
	target/release/recovery
	target/release/attach
	target/release/cache
	target/release/beside-md
	target/release/laboratory
	@command -v gungraun-runner >/dev/null || $(CARGO) install --locked gungraun-runner --version 0.20.0
	$(CARGO) bench $(FLAGS) --package braid-bench --bench engine_instructions
	$(CARGO) bench $(FLAGS) --package braid-bench --bench parity_instructions

# A file system on an attached volume, volume and writers in one memory cgroup: 200 rounds over each
# level, as root. (`make test` has two of each.)
soak-memory: export BRAID_MEMORY_ROUNDS ?= 200
soak-memory:
	@scripts/setup.sh build test
	$(CARGO) test $(FLAGS) --package braid --test faults memory -- --nocapture --test-threads 1

# SIGKILL in the middle of fio with verification, 50 times for each level over each export, as root.
# (`make test` has one of each.)
soak-kills: export BRAID_KILLS ?= 50
soak-kills:
	@scripts/setup.sh build test
	$(CARGO) test $(FLAGS) --package braid --test faults kills -- --nocapture

clean:
	$(CARGO) clean
