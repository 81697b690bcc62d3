# Everything that is done with this repository. `make` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Each is a Go module of its own, with its tests.
CONTRIB := contrib/cron contrib/gocron contrib/http contrib/otel contrib/prometheus
MODULES := . cmd/berth $(CONTRIB) test test/bench test/browser

# Servers of other releases than this machine has, built from source: 7.2, 8.0.1, newest. They come first in PATH.
REDIS :=
VALKEY :=
export BERTH_SETUP_REDIS := $(REDIS)
export BERTH_SETUP_VALKEY := $(VALKEY)
export PATH := $(REDIS:%=$(CURDIR)/.cache/redis-%:)$(VALKEY:%=$(CURDIR)/.cache/valkey-%:)$(PATH)

# $(call packages,MODULE...): all of theirs, as the go command takes them in the workspace.
packages = $(patsubst ././%,./%,$(patsubst %,./%/...,$(1)))

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
	@$(step) go -C test test -count=1 -timeout 0 -v -run '^TestTorture$$' ./torture \
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
	@$(step) go -C test test -count=1 -timeout 0 -parallel 1 -v ./integration -holds.for 1m -moves.for 30s -middle.dead 10000 \
		-run '^(TestHoldsOfManyNamesAreAllKept|TestSlotsThatMoveLoseNoHoldOfEitherForm|TestTheDeadInTheMiddleOfALine.*)$$'

# The time of one measurement
FOR ?= 1s

.PHONY: bench
bench: ## Measure Berth beside other locks, semaphores and pools, ROUNDS=7 times FOR=1s; into out
	@tools/setup.sh cc redis
	@mkdir -p out
	@go -C test/bench run . -rounds $(or $(ROUNDS),7) -for $(FOR) -only '$(ONLY)' -page '$(CURDIR)/out/budgets.txt' \
		-json '$(CURDIR)/out/bench.json' -svg '$(CURDIR)/out/bench.svg' -markdown '$(CURDIR)/out/bench.md'

# STRICT=1 makes a step an error that is above its baseline by more than 2 % in each of four rounds; BASELINE=write makes
# what was measured the baseline. In a plan the race detector is kept out of it.
STRICT ?=
BASELINE ?=

.PHONY: bench-instructions
bench-instructions: ## Count the server's instructions for single steps, by valgrind, beside those of test/bench/baseline.json
	@tools/setup.sh cc redis valgrind
	@mkdir -p out
	@$(if $(step),$(step) GOFLAGS=) go -C test/bench run ./instructions -rounds $(or $(ROUNDS),$(if $(BASELINE),3,1)) -only '$(ONLY)' \
		-json '$(CURDIR)/out/instructions.json' -markdown '$(CURDIR)/out/instructions.txt' -revision "$$(git describe --always --dirty)" \
		$(if $(STRICT),-strict) $(if $(filter write,$(BASELINE)),-write)

.PHONY: bench-docs
bench-docs: ## Do both, and write docs/generated/benchmarks.md and the picture of docs: half an hour in which nothing else may run
	@$(MAKE) --no-print-directory bench ONLY=
	@$(MAKE) --no-print-directory bench-instructions ONLY= ROUNDS= STRICT= BASELINE=
	@cat out/budgets.txt out/instructions.txt >docs/generated/benchmarks.md && cp out/bench.svg docs/benchmarks.svg

##@ Work

# A plan has steps, which are the targets under "Check". internal/tools/suite has make run them two at a time,
# whatever fails, and sums up.
TESTS := build build-tests test-library test-servers test-command test-contrib test-bench
CI := check-tidy $(TESTS) check-docs check-api lint vet check-release test-browser
NIGHTLY := $(CI) check-release-all size check-newest vet-all test-browser-all histories bench-instructions endurance torture
SETUP := cc redis valkey tmux shells prometheus
# A plan may be a step of another one, which goes on with the programs that it has built: they are moved into place.
plan = mkdir -p .cache/built && go build -o .cache/built/ ./internal/tools/suite && \
	GOWORK=off go -C tools build -o ../.cache/built/ gotest.tools/gotestsum && mv .cache/built/* .cache && .cache/suite run $@

# How all is built in a plan, also what tests build by themselves: what is built in the same way is built once, by
# -trimpath in every clone. The race detector is kept out of the interpreter that runs the scripts on the embedded server:
# each of its states belongs to one goroutine, and to watch it is a third of what the library's tests cost. It is kept out
# of a few packages, too, whose memory their caller alone sees. It must watch a package that uses sync.Map, as miniredis
# does: the linker may give that package's copy of the code to all others, and races would be told that are none. With
# Go 1.27 all is watched: its runtime looks at slices that grow in unwatched code, and tells of such races, too. The
# commands of rueidis are a sixth of all that is compiled; without inlining they are a tenth. To collect garbage seldom
# saves the compiler and the linter a fifth of their time, and to tell debuggers nothing another one. What the caller sets
# counts.
ifneq ($(filter go1.26%,$(shell go env GOVERSION)),)
UNWATCHED := github.com/yuin/gopher-lua/... github.com/alicebob/miniredis/v2/server \
	bufio crypto/sha1 encoding/hex regexp/syntax strconv unicode/utf8
COMMANDS := -race=0
endif
BUILT := -race -trimpath -ldflags=-w -gcflags=all=-dwarf=false $(UNWATCHED:%='-gcflags=%=-race=0 -dwarf=false') \
	'-gcflags=github.com/redis/rueidis/internal/cmds=-l $(COMMANDS) -dwarf=false'
check test ci nightly: export GOFLAGS := $(BUILT) $(shell go env GOFLAGS)
check test ci nightly: export GOGC := $(or $(GOGC),400)
check test ci nightly: export CGO_ENABLED := 1
check: export LINTED := . cmd/berth
check: export FIRST := build
ci nightly: export BERTH_TEST_DOCKER := required

.PHONY: check
check: ## What to run before each commit, some minutes: tidy, docs, lint with vet, unit tests
	@tools/setup.sh cc golangci-lint luacheck
	@$(plan) check-tidy build check-docs test-library test-command lint

.PHONY: test
test: ## Run all tests with the race detector, on real servers too; sets up what is missing
	@tools/setup.sh $(SETUP)
	@$(plan) $(TESTS)

# A Docker that it starts ends with it.
with_docker = export BERTH_DOCKER=$$(mktemp -d -t berth-docker.XXXXXX); \
	trap 'tools/docker.sh stop; rm -rf "$$BERTH_DOCKER"' EXIT; tools/setup.sh docker;

.PHONY: ci
ci: ## Everything a change must pass
	@tools/setup.sh $(SETUP) golangci-lint luacheck chromium axe zip
	@$(with_docker) $(plan) $(CI)

# With empty caches, as on a fresh machine, so that the costs can be compared.
.PHONY: nightly
nightly: export DURATION = 1h
nightly: export STRICT = 1
nightly: ## All of that, and what takes long, in two hours; writes out/nightly.json, and the costs that make ci compares
	@tools/setup.sh $(SETUP) golangci-lint luacheck chromium axe valgrind zip debootstrap
	@mkdir -p out
	@$(with_docker) export GOCACHE="$$BERTH_DOCKER/build" GOLANGCI_LINT_CACHE="$$BERTH_DOCKER/lint" \
		BERTH_SUITE_LEDGER=out/nightly.json BERTH_SUITE_COMMIT="$$(git describe --always --dirty --abbrev=40 --exclude='*')"; $(plan) $(NIGHTLY)
	@cp out/nightly.json internal/tools/suite/costs.json

.PHONY: fmt
fmt: ## Format the Go code
	@tools/setup.sh golangci-lint
	@tools/lint.sh fmt $(MODULES)

# For test/bench, see check-tidy.
.PHONY: tidy
tidy: ## Tidy go.mod and go.sum of the modules
	@tools/tidy.sh $(filter-out test/bench,$(MODULES)) tools tools/release

.PHONY: docs
docs: ## Write docs/generated and scripts/composed
	@go run ./internal/tools/docs
	@go -C cmd/berth test ./internal/commands -run '^TestEachCommandThatPrintsJSONIsDescribed$$' -update

KEPT ?= test/rolling/testdata

# v1.2.3
VERSION ?=
# All, unless some are named: linux/amd64 ...
PLATFORMS ?=
export PLATFORMS

.PHONY: release-prepare
release-prepare: ## Write what the commit of release VERSION=v1.2.3 has: kept scripts and exports, CHANGELOG.md, what modules require of each other
	@tools/release.sh prepare '$(VERSION)'

.PHONY: release
release: ## Build release VERSION=v1.2.3 into out/release, after make nightly has passed on its commit, and print how to tag it
	@tools/setup.sh zip
	@tools/release.sh build '$(VERSION)'

.PHONY: publish
publish: ## Put out/release of the tag VERSION=v1.2.3 on GitHub, by gh
	@gh release create '$(VERSION)' --verify-tag --title '$(VERSION)' --notes-file out/release/notes.md out/release/files/*

.PHONY: keep-scripts
keep-scripts: ## Keep the scripts of release VERSION=v1.2.3 for the tests of rolling deploys; never overwrites
	@[[ '$(VERSION)' =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9a-z.]+)?$$ ]] || { echo "VERSION: '$(VERSION)' is no version like v1.2.3" >&2; exit 1; }
	@[ ! -e '$(KEPT)/$(VERSION)' ] || { echo "$(KEPT)/$(VERSION) is there already: what is kept is never written anew" >&2; exit 1; }
	@go run ./internal/tools/docs -check
	@mkdir -p '$(KEPT)' && draft=$$(mktemp -d '$(KEPT)/.keep-XXXXXX') && trap 'rm -rf "$$draft"' EXIT && \
		cp scripts/composed/*/*.lua "$$draft" && (cd "$$draft" && sha256sum *.lua >SHA256SUMS) && \
		chmod 755 "$$draft" && mv "$$draft" '$(KEPT)/$(VERSION)'

.PHONY: keep-api
keep-api: ## Keep the exported API of this tree as that of the last version: for a release, or for a change that breaks programs
	@GOWORK=off go -C tools run ./api keep

.PHONY: setup
setup: ## Install what tests and linters need; with REDIS=7.2 VALKEY=newest, as other targets, build these servers
	@tools/setup.sh cc redis valkey tmux shells prometheus golangci-lint luacheck

.PHONY: setup-docker
setup-docker: ## Install and start Docker where none answers, for the tests in containers
	@tools/setup.sh docker

##@ Check

# The tests that do random things, and where they are.
HISTORIES := AlwaysByTime|ARecordReadsBack|ARecordThatIsCut|FilesSay|Whatever|PlainCase|OwnLaws|BelievedInByNobody|WhatComesNext|FiftyNodes|SixteenProcesses|EachHour|EachDay|IsLostPasses
RANDOM := ./internal/heartbeat ./internal/state ./internal/tools/compose ./internal/model/... ./pkg/... ./test/integration

# In a plan each of these is a step.
step = $(if $(BERTH_SUITE),.cache/suite step $@)
# $(call tests,VAR=value...,FLAG... PACKAGE...). vet is one of the linters. A test that waits for ever is to be named; a slow
# machine is not to be taken for one.
tests = $(if $(BERTH_SUITE),.cache/suite tests $@ $(1),env $(1) go test) -race -vet=off -timeout=30m $(2)
# What no clock decides gives way to what goes by the real one.
yields := nice -n 10

# Their order in a plan. What two go commands need at the same time is built by both, so all is built first. Make begins
# those that are ready in the order of the plan: the longest first.
FIRST ?= build-tests
ifdef BERTH_SUITE
build-tests test-library: build
check-docs check-api lint vet test-command test-contrib test-servers test-bench test-browser: $(FIRST)
test-browser check-release: lint
$(filter-out $(CI),$(NIGHTLY)): $(CI)
endif

.PHONY: build
build: # the library and the command, with their tests
	@$(step) go list -race -test -export -f '{{/* nothing */}}' $(call packages,. cmd/berth)

.PHONY: build-tests
build-tests: # the other modules
	@$(step) go list -race -test -export -f '{{/* nothing */}}' $(call packages,$(filter-out . cmd/berth,$(MODULES)))

# Not of test/bench: tidy reads the tests of what a module imports, too, and those of
# redsync import a module that cannot be had everywhere. There, `go mod tidy -e` by hand.
.PHONY: check-tidy
check-tidy: ## go.mod and go.sum of the modules are tidy
	@$(step) tools/tidy.sh -diff $(filter-out test/bench,$(MODULES)) tools tools/release

.PHONY: check-docs
check-docs: ## docs/generated and scripts/composed are fresh; links, anchors and names exist; the docs are short; so are subjects of commits
	@$(step) go run ./internal/tools/docs -check

.PHONY: check-api
check-api: ## No program that uses the last version is broken by what is exported now; see keep-api
	@$(step) env GOWORK=off go -C tools run -race=false ./api check

LINTED ?= $(MODULES)

.PHONY: lint
lint: ## Check the Go code, the composed Lua scripts and the workflows; sets up what is missing
	@tools/setup.sh golangci-lint luacheck
	@$(yields) $(step) tools/lint.sh check $(LINTED)

# For this system it is one of the linters of `make lint`. What is C for another system would need
# its compiler.
.PHONY: vet
vet: ## go vet for macOS and Windows of the packages that differ there
	@$(yields) $(step) tools/vet.sh differ

.PHONY: vet-all
vet-all: ## go vet for macOS and Windows of the library and the command
	@$(yields) $(step) tools/vet.sh all

# The newest release of Go; go.mod has the oldest that will do.
NEWEST_GO := go1.27.4
newest := $(MAKE) --no-print-directory

.PHONY: check-newest
check-newest: ## Run `make check` with the newest release of Go
	@$(step) env -u BERTH_SUITE -u BERTH_TEST_REPORT -u BERTH_SUITE_LEDGER -u MAKEFLAGS GOTOOLCHAIN=$(NEWEST_GO) $(newest) check

.PHONY: size
size: ## Print the size of a program with one lock
	@$(step) tools/size.sh

.PHONY: check-release
check-release: ## Make a release in a copy, for linux/amd64; an application adds Berth and installs the command, and nothing else is upgraded
	@$(yields) $(step) tools/try-release.sh first

.PHONY: check-release-all
check-release-all: ## Make a release in a copy, for all platforms; install its deb in a new Debian, and run its image
	@$(step) tools/try-release.sh all

# The tests of the library cannot lean on a server or Docker: those of this folder fail. Most of them take place in
# virtual time, so that processor time is all they cost: with one processor to a process they cost a sixth less. The
# race detector would have each process sleep for a second at its end.
BARE := $(CURDIR)/.cache/without-servers
alone = "PATH=$(BARE):$$PATH" BERTH_TEST_REDIS= BERTH_REDIS= GORACE=atexit_sleep_ms=50

$(BARE):
	@mkdir -p $@
	@for program in redis-server valkey-server docker; do \
		printf '#!/bin/sh\necho "these tests run without %s" >&2\nexit 1\n' $$program >$@/$$program; chmod +x $@/$$program; done

.PHONY: test-library
test-library: $(BARE) ## Test the library, with nothing but Go
	@$(call tests,$(alone),-cpu=1 ./pkg/... ./...)

# Its tests start many processes, whose leases go by the real clock.
.PHONY: test-command
test-command: $(BARE) ## Test the command, with nothing but Go
	@$(call tests,$(alone),-cpu=1 -p=1 $(call packages,cmd/berth))

.PHONY: test-contrib
test-contrib: $(BARE) ## Test the modules of contrib, with nothing but Go
	@$(call tests,$(alone),-cpu=1 $(call packages,$(CONTRIB)))

NEEDED := BERTH_TEST_TMUX=required BERTH_TEST_SHELLS=required BERTH_TEST_PROMETHEUS=required

.PHONY: test-servers
test-servers: ## Test on real servers: conformance, integration, rolling deploys, torture
	@$(call tests,$(NEEDED),-p=2 $(call packages,test))

.PHONY: test-bench
test-bench: ## Run every row of the benchmark once, as small as can be: a budget names each
	@$(call tests,,-p=1 $(call packages,test/bench))

.PHONY: test-browser
test-browser: ## Look at each view of the console in a real browser
	@$(call tests,,-p=1 -run=^TestEveryView$$ ./test/browser)

.PHONY: test-browser-all
test-browser-all: ## Test the console in a real browser, and what an open page costs
	@$(call tests,,-p=1 $(call packages,test/browser))

.PHONY: histories
histories: ## Run ten times as many random histories as `make test`
	@$(call tests,BERTH_TEST_TIMES=10,-count=1 -timeout=2h '-run=$(HISTORIES)' $(RANDOM))

##@ Leave

.PHONY: clean
clean: ## Remove what was built and installed into this folder
	@rm -rf .cache bin out
