# Everything that is done with this repository. `make` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Each is a Go module of its own, with its tests.
MODULES := . test

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Use

.PHONY: demo
demo: ## Watch processes share a semaphore; needs nothing but Go
	@go run ./cmd/berth demo

##@ Work

.PHONY: test
test: ## Run all tests with the race detector, on real servers too; sets up what is missing
	@tools/setup.sh cc redis
	@tools/test.sh $(MODULES)

.PHONY: fmt
fmt: ## Format the Go code
	@tools/setup.sh golangci-lint
	@tools/lint.sh fmt $(MODULES)

.PHONY: lint
lint: ## Check the Go code and the composed Lua scripts; sets up what is missing
	@tools/setup.sh golangci-lint luacheck
	@tools/lint.sh go $(MODULES)
	@tools/lint.sh lua

.PHONY: docs
docs: ## Write the generated parts of the docs
	@go run ./internal/tools/docs

.PHONY: setup
setup: ## Install what tests and linters need: gcc, a Redis, golangci-lint, luacheck
	@tools/setup.sh cc redis golangci-lint luacheck

##@ Check

.PHONY: ci
ci: ## Everything a change must pass, cheap checks first
	@tools/steps.sh check-tidy check-docs vet setup lint test check-consumer

.PHONY: check-tidy
check-tidy: ## go.mod and go.sum of all modules are tidy
	@for module in $(MODULES); do echo "go mod tidy -diff in $$module"; go -C $$module mod tidy -diff; done

.PHONY: check-docs
check-docs: ## Generated parts are fresh; links, anchors and the names in docs/parity.md exist
	@go run ./internal/tools/docs -check

.PHONY: vet
vet: ## go vet: all modules here, the library for macOS and Windows
	@for module in $(MODULES); do echo "go vet in $$module"; go -C $$module vet ./...; done
	@for os in darwin windows; do echo "go vet for $$os"; GOOS=$$os go vet ./...; done

.PHONY: check-consumer
check-consumer: ## An application can add Berth and install the command, and nothing else is upgraded
	@tools/consumer.sh

##@ Leave

.PHONY: clean
clean: ## Remove what was built and installed into this folder
	@rm -rf .cache bin
