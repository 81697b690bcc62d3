#!/usr/bin/env bash
# test.sh MODULE...: run the tests of the modules with the race detector. Those
# of the library itself must pass with nothing but Go, so they are kept from
# finding a server.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=1 # the race detector needs it

bare=$(mktemp -d)
export BERTH_TEST_REPORT=$bare/report # what tests could not run; go test would swallow it
finish() {
  if [ -s "$BERTH_TEST_REPORT" ]; then cat "$BERTH_TEST_REPORT"; fi
  rm -rf "$bare"
}
trap finish EXIT
for program in redis-server valkey-server docker; do
  printf '#!/bin/sh\necho "the tests of the library run without %s" >&2\nexit 1\n' "$program" >"$bare/$program"
  chmod 755 "$bare/$program"
done

for module in "$@"; do
  printf 'go test -race in %s\n' "$module"
  if [ "$module" = . ]; then
    env -u BERTH_TEST_REDIS -u BERTH_REDIS PATH="$bare:$PATH" go test -race -timeout 30m ./...
  else
    go -C "$module" test -race -timeout 30m ./...
  fi
done
