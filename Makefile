# What a developer runs is what continuous integration runs. Each target is a line or two: what takes more is Rust.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup check lab-tests sanity test lab image manifests cluster-build cluster-up cluster-down cluster demo

# What is run is built in one way only: with another choice of targets cargo builds most of it once more.
build := cargo build --workspace --bins --examples
built := $(or $(CARGO_TARGET_DIR),target)/debug

help: ## List the targets.
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' Makefile | expand -t 17

setup: ## Install what is missing (Debian 12 with Rust and Go).
	@.ci/setup

check: ## Format, lints, documentation, unit tests: no root, no guest.
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps
	cargo test --workspace --lib --bins

lab-tests: ## Tests on real LVM, in guests.
	$(build)
	cargo test --workspace --test '*'

sanity: ## The conformance suite against the driver, in a guest.
	$(build)
	@$(built)/sanity

test: setup check lab-tests sanity ## All of the above.

lab: override export CMD := $(value CMD)
lab: ## Run CMD in a guest with a 4 GiB disk: make lab CMD='lsblk'
	@cargo run --quiet --package lab -- run --disk 4G -- sh -c "$${CMD:?name a command: make lab CMD=lsblk}"

image: ## Build the container image, target/image/quarry.tar (ARCH=arm64 for another architecture).
	$(build)
	@$(built)/deploy image

manifests: ## Render the chart into deploy/manifests.
	$(build)
	@$(built)/deploy manifests

cluster-build: ## Build what a Kubernetes cluster is made of: long when cold.
	$(build)
	@$(built)/cluster build

cluster-up: cluster-build ## Bring a Kubernetes cluster up, to look around in: make cluster-up ARGS='--nodes 3'
	@$(built)/cluster up $(ARGS)

cluster-down: ## Take that cluster down.
	@$(built)/cluster down

cluster: cluster-build ## Run the scenarios in a cluster of their own: make cluster ARGS='empty-dir'
	@$(built)/cluster run $(ARGS)

demo: setup ## Show a volume's life, in a guest.
	$(build)
	@$(built)/examples/demo
