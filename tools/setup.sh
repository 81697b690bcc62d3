#!/usr/bin/env bash
# setup.sh WHAT...: make sure that what tests and linters need is there, and
# install it where it is missing. WHAT is any of cc, redis, golangci-lint,
# luacheck. What is there already is left alone, so it may run any number of
# times.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/lib.sh

# apt_install PACKAGE...: install Debian packages without starting their
# services: a Redis that a package starts would sit on the default port.
apt_install() {
  command -v apt-get >/dev/null || die "cannot install $*: this is not a Debian; $hint"
  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "cannot install $*: run as root, or install sudo; $hint"
    root=(sudo)
  fi
  say "installing $* with apt-get"
  local policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee "$policy" >/dev/null
    "${root[@]}" chmod 755 "$policy"
    # shellcheck disable=SC2064 # the values of now are meant
    trap "${root[*]} rm -f $policy" EXIT
  fi
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq ||
    die "apt-get update failed; $hint"
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >/dev/null ||
    die "apt-get install $* failed; $hint"
}

# The race detector links with the C compiler.
setup_cc() {
  local hint="install a C compiler (gcc and the C library's headers) yourself"
  local cc
  cc=$(go env CC)
  if echo '#include <stdlib.h>' | "$cc" -xc -fsyntax-only - 2>/dev/null; then return; fi
  apt_install gcc libc6-dev
}

# The tests look for a server in the same order, see test/harness. Those that
# stop, fill or restart one need their own even if BERTH_TEST_REDIS names one.
setup_redis() {
  local hint="install redis-server 7 or newer, or run Docker with the image $image"
  if docker_has_image; then
    say "Redis for the tests: Docker, $image"
    return
  fi
  if ! command -v redis-server >/dev/null; then
    if [ -z "${BERTH_TEST_REDIS:-}" ]; then
      apt_install redis-server
    elif ! (apt_install redis-server); then
      say "Redis for the tests: BERTH_TEST_REDIS alone; tests that need a server of their own will fail"
      return
    fi
  fi
  local version
  version=$(redis-server --version | sed -n 's/.* v=\([0-9.]*\).*/\1/p')
  say "Redis for the tests: redis-server $version"
  [ "${version%%.*}" -ge 7 ] || die "redis-server $version is too old; $hint"
}

docker_has_image() {
  command -v docker >/dev/null && timeout 30 docker image inspect "$image" >/dev/null 2>&1
}

setup_luacheck() {
  local hint="install luacheck yourself"
  if command -v luacheck >/dev/null; then return; fi
  apt_install lua-check
}

# Built from source, so that it knows the Go that builds Berth.
setup_golangci_lint() {
  if [ -x "$golangci_lint" ]; then return; fi
  say "building golangci-lint $golangci_version, which takes some minutes"
  GOBIN=$(dirname "$golangci_lint") GOFLAGS='' go install \
    "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$golangci_version"
}

for what in "$@"; do
  "setup_${what//-/_}"
done
