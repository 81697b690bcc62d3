#!/usr/bin/env bash
# setup.sh WHAT...: make sure that what tests and linters need is there, and
# install it where it is missing. WHAT is any of cc, redis, valkey, valgrind, tmux, shells,
# prometheus, chromium, axe, golangci-lint, luacheck, docker, zip, debootstrap. What is there already is left alone, so it may run any
# number of times.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/lib.sh

# as_root COMMAND...: run it as root.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "cannot install anything: run as root, or install sudo; $hint"
  fi
}

# apt_install PACKAGE...: install Debian packages without starting their
# services: a Redis that a package starts would sit on the default port.
apt_install() {
  command -v apt-get >/dev/null || die "cannot install $*: this is not a Debian; $hint"
  say "installing $* with apt-get"
  local policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
    # shellcheck disable=SC2064 # the value of now is meant
    trap "as_root rm -f $policy" EXIT
  fi
  apt_update
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >/dev/null ||
    die "apt-get install $* failed; $hint"
}

apt_update() {
  command -v apt-get >/dev/null || die "this is not a Debian; $hint"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq || die "apt-get update failed; $hint"
}

backports=/etc/apt/sources.list.d/berth-backports.sources

# apt_backports: have apt know the backports of this Debian, in the archive that the
# release itself comes from, until the file is removed. What is in the release, too, is
# not taken from there unless it is asked for.
apt_backports() {
  local release uri
  read -r uri release < <(debian) || die "apt has no source of this Debian's release; $hint"
  as_root tee "$backports" >/dev/null <<EOF
Types: deb
URIs: $uri
Suites: $release-backports
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
EOF
}

# The race detector links with the C compiler.
setup_cc() {
  local hint="install a C compiler (gcc and the C library's headers) yourself"
  local cc
  cc=$(go env CC)
  if echo '#include <stdlib.h>' | "$cc" -xc -fsyntax-only - 2>/dev/null; then return; fi
  apt_install gcc libc6-dev
}

declare -A sources=([redis]=https://github.com/redis/redis [valkey]=https://github.com/valkey-io/valkey)

# build_server redis|valkey RELEASE: build the server from source, into the folder that the Makefile has in PATH.
# RELEASE is a version, the beginning of one (7.2), or newest; the newest of the versions that match is built.
build_server() {
  local name=$1 release=$2 source=${BERTH_SETUP_SOURCE:-${sources[$1]}}
  local into=$PWD/.cache/$name-$release hint="see the versions at $source" tags tag work
  if [ -x "$into/$name-server" ]; then return; fi
  tags=$(git ls-remote --tags --refs "$source") || die "cannot read the versions of $name; $hint"
  tag=$(sed -nE 's#.*refs/tags/([0-9]+(\.[0-9]+)+)$#\1#p' <<<"$tags" | sort -V |
    awk -v release="$release" 'release == "newest" || $0 == release || index($0, release ".") == 1' | tail -n 1)
  [ -n "$tag" ] || die "there is no $name $release; $hint"
  say "building $name $tag, which takes some minutes"
  work=$(mktemp -d)
  git -c advice.detachedHead=false clone -q --depth 1 --branch "$tag" "$source" "$work" || die "cannot get $name $tag; $hint"
  env -u MAKEFLAGS make -C "$work" -j 2 "$name-server" >"$work.log" 2>&1 ||
    die "cannot build $name $tag: see $work.log"
  mkdir -p "$into"
  mv "$work/src/$name-server" "$into"
  rm -rf "$work" "$work.log"
}

# Redis Cluster, Sentinel and servers that are stopped, filled or restarted are
# processes, even if BERTH_TEST_REDIS names a server or Docker has the image.
setup_redis() {
  local hint="install redis-server 7 or newer"
  if [ -n "${BERTH_SETUP_REDIS-}" ]; then
    build_server redis "$BERTH_SETUP_REDIS"
  elif ! command -v redis-server >/dev/null; then
    apt_install redis-server
  fi
  local version
  version=$(redis-server --version | sed -n 's/.* v=\([0-9.]*\).*/\1/p')
  say "Redis for the tests: redis-server $version"
  [ "${version%%.*}" -ge 7 ] || die "redis-server $version is too old; $hint"
}

# Debian 12 has Valkey in its backports alone.
setup_valkey() {
  local hint="install valkey-server 8 or newer"
  if [ -n "${BERTH_SETUP_VALKEY-}" ]; then
    build_server valkey "$BERTH_SETUP_VALKEY"
  elif ! command -v valkey-server >/dev/null; then
    apt_update
    if ! apt-cache policy valkey-server | grep 'Candidate: [0-9]' >/dev/null; then
      apt_backports
    fi
    local failed=""
    (apt_install valkey-server) || failed=yes
    as_root rm -f "$backports" # also where it is of no use: apt would complain ever after
    [ -z "$failed" ] || exit 1
  fi
  local version
  version=$(valkey-server --version | sed -n 's/.* v=\([0-9.]*\).*/\1/p')
  say "Valkey for the tests: valkey-server $version"
  [ "${version%%.*}" -ge 8 ] || die "valkey-server $version is too old; $hint"
}

# Its callgrind counts the instructions of a server.
setup_valgrind() {
  local hint="install valgrind yourself"
  if command -v valgrind >/dev/null && command -v callgrind_control >/dev/null; then return; fi
  apt_install valgrind
}

# berth top is tested on the terminals of a tmux.
setup_tmux() {
  local hint="install tmux yourself"
  if command -v tmux >/dev/null; then return; fi
  apt_install tmux
}

# Completion is tested in bash, zsh and fish.
setup_shells() {
  local hint="install bash-completion, zsh and fish yourself"
  if command -v zsh >/dev/null && command -v fish >/dev/null && [ -e /usr/share/bash-completion/bash_completion ]; then return; fi
  apt_install bash-completion zsh fish
}

# promtool tests the rules of deploy; the dashboard is asked of a Prometheus.
setup_prometheus() {
  local hint="install prometheus and promtool 2.42 or newer"
  if ! command -v prometheus >/dev/null || ! command -v promtool >/dev/null; then
    apt_install prometheus
  fi
}

# A Docker that was not running is started, and goes on until tools/docker.sh stop.
setup_docker() {
  local hint="install and start Docker yourself"
  if tools/docker.sh answers; then return; fi
  if ! command -v dockerd >/dev/null || ! command -v iptables >/dev/null; then
    apt_install docker.io iptables
  fi
  command -v docker >/dev/null || apt_install docker-cli # newer Debians have it apart
  tools/docker.sh start
}

# What test/browser drives, and the letters that it draws: the package asks for none.
setup_chromium() {
  local hint="install Chromium, or have BERTH_TEST_BROWSER name one"
  if [ -n "${BERTH_TEST_BROWSER-}" ]; then return; fi
  local name
  for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if command -v "$name" >/dev/null; then return; fi
  done
  apt_install chromium fonts-dejavu-core
}

# axe-core, which test/browser puts into pages: the version and the checksum of its package-lock.json.
setup_axe() {
  local hint="install npm yourself"
  local from=test/browser into=.cache/axe
  if cmp -s $from/package-lock.json $into/package-lock.json && [ -e $into/node_modules/axe-core/axe.min.js ]; then return; fi
  command -v npm >/dev/null || apt_install npm
  mkdir -p $into
  cp $from/package.json $from/package-lock.json $into
  npm --prefix $into ci --ignore-scripts --no-audit --no-fund --silent || die "npm ci failed; $hint"
}

# A release has archives for Windows.
setup_zip() {
  local hint="install zip yourself"
  if command -v zip >/dev/null; then return; fi
  apt_install zip
}

# The deb of a release is installed in a new root.
setup_debootstrap() {
  local hint="install debootstrap yourself"
  if command -v debootstrap >/dev/null; then return; fi
  apt_install debootstrap
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
