# lib.sh: what the other scripts share. To be sourced in the repository's root.
# shellcheck shell=bash disable=SC2034

golangci_version=v2.15.0

# One binary per version of the linter and of Go, for all clones.
golangci_lint=${XDG_CACHE_HOME:-$HOME/.cache}/berth/golangci-lint-$golangci_version-$(go env GOVERSION)/golangci-lint

say() { printf '%s\n' "$*"; }

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}
