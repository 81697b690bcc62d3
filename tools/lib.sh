# lib.sh: what the other scripts share. To be sourced in the repository's root.
# shellcheck shell=bash disable=SC2034

golangci_version=v2.15.0

# One binary per version of the linter and of Go, for all clones.
golangci_lint=${XDG_CACHE_HOME:-$HOME/.cache}/berth/golangci-lint-$golangci_version-$(go env GOVERSION)/golangci-lint

say() { printf '%s\n' "$@"; }

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# debian: print the archive that this release of Debian itself comes from, and the release, as apt knows them; nothing where
# apt has no such source.
debian() {
  # shellcheck disable=SC2016 # the fields are apt's
  apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' 'Origin: Debian' |
    awk -v release="$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")" '$2 == release && !found++'
}
