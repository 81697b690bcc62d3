# lib.sh: what the other scripts share. To be sourced in the repository's root.
# shellcheck shell=bash disable=SC2034

golangci_version=v2.15.0

# One binary per version of the linter and of Go.
golangci_lint=$PWD/.cache/golangci-lint-$golangci_version-$(go env GOVERSION)/golangci-lint

say() { printf '%s\n' "$*"; }

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}
