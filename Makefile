# Everything that is done with this repository. `make` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Each is a Go module of its own, with its tests.
MODULES := . cmd/berth contrib/cron contrib/gocron contrib/http contrib/otel contrib/prometheus test test/bench test/browser

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Use

.PHONY: demo
demo: ## Watch processes share a semaphore; needs nothing but Go
	@go run ./cmd/berth demo

# 3m, 1h, ...; a seed and a topology (redis, valkey, cluster, sentinel) to run again; a
# part of the names of faults, for a run with no others.
DURATION ?= 3m
SEED ?= 0
ROUNDS ?=
ON ?=
FAULTS ?=

.PHONY: torture
torture: ## Break the network, the servers and the processes for DURATION=3m; prints faults against guarantees
	@tools/setup.sh cc redis valkey
	@go -C test test -count=1 -timeout 0 -v -run '^TestTorture$$' ./torture \
		-torture.duration $(DURATION) -torture.seed $(SEED) -torture.rounds $(or $(ROUNDS),0) -torture.on '$(ON)' \
		-torture.faults '$(FAULTS)'

# Rows of a benchmark, or pictures, by the beginnings of their names: contended,pool
ONLY ?=

.PHONY: pictures
pictures: ## Take pictures of the console by a real browser: docs/pictures, and more in out/pictures
	@tools/setup.sh redis chromium
	@go -C test/browser run ./pictures -into '$(CURDIR)/docs/pictures' -all '$(CURDIR)/out/pictures' -only '$(ONLY)'

.PHONY: endurance
endurance: ## Three tests in their full size: 10 000 holds beside four busy loops, 2000 in slots that move, 10 000 dead in a line
	@tools/setup.sh cc redis
	@go -C test test -count=1 -timeout 0 -parallel 1 -v ./integration -holds.for 1m -moves.for 30s -middle.dead 10000 \
		-run '^(TestHoldsOfManyNamesAreAllKept|TestSlotsThatMoveLoseNoHoldOfEitherForm|TestTheDeadInTheMiddleOfALine.*)$$'

# The time of one measurement
FOR ?= 1s

.PHONY: bench
bench: ## Measure Berth beside redsync, redislock and rueidislock, ROUNDS=7 times FOR=1s; into out
	@tools/setup.sh cc redis
	@mkdir -p out
	@go -C test/bench run . -rounds $(or $(ROUNDS),7) -for $(FOR) -only '$(ONLY)' \
		-json '$(CURDIR)/out/bench.json' -svg '$(CURDIR)/out/bench.svg' -markdown '$(CURDIR)/out/bench.md'

# STRICT=1 makes a step above its baseline by more than 3 % an error; BASELINE=write makes
# what was measured the baseline.
STRICT ?=
BASELINE ?=

.PHONY: bench-instructions
bench-instructions: ## Count the server's instructions for single steps, by valgrind, beside those of test/bench/baseline.json
	@tools/setup.sh cc redis valgrind
	@mkdir -p out
	@go -C test/bench run ./instructions -rounds $(or $(ROUNDS),$(if $(BASELINE),3,1)) -only '$(ONLY)' \
		-json '$(CURDIR)/out/instructions.json' -revision "$$(git describe --always --dirty)" \
		$(if $(STRICT),-strict) $(if $(filter write,$(BASELINE)),-write)

##@ Work

# What these three do, and how long each part takes, is in internal/tools/suite/plan.go;
# it runs the targets under "Check".
SUITE := mkdir -p .cache && go build -o .cache/suite ./internal/tools/suite && exec .cache/suite

.PHONY: check
check: ## What to run before each commit, some minutes: tidy, docs, lint with vet, unit tests
	@$(SUITE) check

.PHONY: test
test: ## Run all tests with the race detector, on real servers too; sets up what is missing
	@$(SUITE) $(or $(PLAN),test)

.PHONY: ci
ci: ## Everything a change must pass; a Docker that it starts ends with it
	@exec $(MAKE) --no-print-directory test PLAN=ci

.PHONY: fmt
fmt: ## Format the Go code
	@tools/setup.sh golangci-lint
	@tools/lint.sh fmt $(MODULES)

# For test/bench, see check-tidy.
.PHONY: tidy
tidy: ## Tidy go.mod and go.sum of the modules
	@tools/tidy.sh $(filter-out test/bench,$(MODULES))

.PHONY: lint
lint: ## Check the Go code and the composed Lua scripts; sets up what is missing
	@tools/setup.sh golangci-lint luacheck
	@failed=0; tools/lint.sh go $(MODULES) || failed=1; tools/lint.sh lua || failed=1; exit $$failed

.PHONY: docs
docs: ## Write docs/generated
	@go run ./internal/tools/docs

# Once for each release, before it is tagged: VERSION=v1.2.3.
KEPT ?= test/rolling/testdata

.PHONY: keep-scripts
keep-scripts: ## Keep the scripts of release VERSION=v1.2.3 for the tests of rolling deploys; never overwrites
	@mkdir -p '$(KEPT)'
	@go run ./internal/tools/compose -out '$(KEPT)' -keep '$(VERSION)'

.PHONY: setup
setup: ## Install what tests and linters need: gcc, Redis, Valkey, tmux, shells, Prometheus, golangci-lint, luacheck
	@tools/setup.sh cc redis valkey tmux shells prometheus golangci-lint luacheck

.PHONY: setup-docker
setup-docker: ## Install and start Docker where none answers, for the tests in containers
	@tools/setup.sh docker

##@ Check

# Not of test/bench: tidy reads the tests of what a module imports, too, and those of
# redsync import a module that cannot be had everywhere. There, `go mod tidy -e` by hand.
.PHONY: check-tidy
check-tidy: ## go.mod and go.sum of the modules are tidy
	@tools/tidy.sh -diff $(filter-out test/bench,$(MODULES))

.PHONY: check-docs
check-docs: ## docs/generated is fresh; links, anchors and the names in docs/parity.md exist; the docs are short
	@go run ./internal/tools/docs -check

# For this system it is one of the linters of `make lint`. What is C for another system would need
# its compiler.
.PHONY: vet
vet: ## go vet of the library and the command for macOS and Windows
	@failed=0; for os in darwin windows; do \
		echo "go vet for $$os"; GOOS=$$os CGO_ENABLED=0 go vet ./... ./cmd/berth/... || failed=1; done; exit $$failed

.PHONY: check-consumer
check-consumer: ## An application can add Berth and install the command, and nothing else is upgraded
	@tools/consumer.sh

##@ Leave

.PHONY: clean
clean: ## Remove what was built and installed into this folder
	@rm -rf .cache bin out
