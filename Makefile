# What a developer runs is what continuous integration runs. Each target is a line or two: what takes more is Rust.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup check lab-tests sanity cluster-tests test soak bench bench-scale lab image manifests cluster-build cluster-up \
	cluster-down cluster e2e demo

# What is run is built in one way only: with another choice of targets cargo builds most of it once more.
build := cargo build --workspace --bins --examples
built := $(or $(CARGO_TARGET_DIR),target)/debug

help: ## List the targets.
	@sed -n 's/^\([a-z0-9-]*\):.*## /  \1\t/p' Makefile | expand -t 17

setup: ## Install what is missing (Debian 12 with Rust and Go).
	@.ci/setup

check: ## Format, lints, documentation, unit tests: no root, no guest.
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps
	cargo test --workspace --lib --bins

lab-tests: setup ## Tests on real LVM, in guests, and of the chart on a real API server.
	$(build)
	@$(built)/cluster build
	cargo test --workspace --test '*'

sanity: setup ## The conformance suite against the driver, in a guest.
	$(build)
	@$(built)/sanity

cluster-tests: setup ## Scenarios in a Kubernetes cluster whose nodes are guests, the driver installed from its chart.
	$(build)
	@$(built)/deploy image --profile dev
	@$(built)/cluster run --driver target/image/quarry-dev.tar wait_for_first_consumer stateful_set grow capacity

test: setup check lab-tests sanity cluster-tests ## All of the above.

soak: setup ## Load the driver for longer, kill it, cut the power: make soak SECONDS=3600 CUTS=500 SEED=7
	$(build)
	QUARRY_LOAD_SECONDS=$(or $(SECONDS),120) QUARRY_LOAD_CUTS=$(or $(CUTS),100) QUARRY_LOAD_MOMENTS=$(or $(MOMENTS),300) \
		$(if $(SEED),QUARRY_LOAD_SEED=$(SEED)) cargo test --test integration -- load:: crash::order::

bench bench-scale: override export QUARRY_BENCH_DRIVER := $(abspath $(or $(CARGO_TARGET_DIR),target))/release/quarry
bench: ## Measure the driver beside stock LVM, in a guest, and bench-scale, over two hours: make bench SAMPLES=100
	@.ci/setup fio
	cargo build --release --package quarry --bin quarry
	$(build)
	QUARRY_BENCH_SAMPLES=$(or $(SAMPLES),100) cargo test --quiet --test integration -- \
		--ignored --exact bench::against_stock_lvm
	@$(MAKE) --no-print-directory bench-scale

bench-scale: ## Measure a controller with very many nodes, on this machine: make bench-scale NODES='1000 10000'
	cargo build --release --package quarry --bin quarry
	QUARRY_BENCH_NODES='$(or $(NODES),1000 10000)' cargo test --quiet --profile crowd --test integration -- \
		--ignored --exact bench::scale::many_nodes_on_one_controller

lab: override export CMD := $(value CMD)
lab: ## Run CMD in a guest with a 4 GiB disk, after make setup: make lab CMD='lsblk'
	@cargo run --quiet --package lab -- run --disk 4G -- sh -c "$${CMD:?name a command: make lab CMD=lsblk}"

image: setup ## Build the container image, target/image/quarry.tar (ARCH=arm64 for another architecture).
	$(build)
	@$(built)/deploy image

manifests: ## Render the chart into deploy/manifests.
	$(build)
	@$(built)/deploy manifests

cluster-build: setup ## Build what a Kubernetes cluster is made of: long when cold.
	$(build)
	@$(built)/cluster build

cluster-up: image ## Bring up a Kubernetes cluster with Quarry in it, to look around in: make cluster-up ARGS='--nodes 3'
	@$(built)/cluster up --driver target/image/quarry.tar $(ARGS)

cluster-down: ## Take that cluster down.
	@$(built)/cluster down

cluster: image ## Run all scenarios in a cluster of their own, or those named: make cluster ARGS='grow capacity'
	@$(built)/cluster run --driver target/image/quarry.tar $(ARGS)

e2e: image ## Run Kubernetes' own storage tests in a cluster, up to 90 minutes, and go on where the last run stopped: make e2e ARGS='--again failed'
	@$(built)/cluster e2e --driver target/image/quarry.tar $(ARGS)

demo: setup ## Show a volume's life, in a guest.
	$(build)
	@$(built)/examples/demo
