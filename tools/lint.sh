#!/usr/bin/env bash
# lint.sh check MODULE... | lint.sh fmt MODULE...
# Check the Go code of the modules, the composed Lua scripts and the workflows, or format the Go code.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/lib.sh

# golangci COMMAND MODULE...: all at once, so that what they share is read once.
golangci() {
  local command=$1 turns=()
  shift
  # Where another one runs it waits for its turn: it would refuse to run.
  if [ "$command" = run ]; then turns=(--allow-serial-runners); fi
  say "golangci-lint $command in $*"
  "$golangci_lint" "$command" "${turns[@]}" "${@/%//...}"
}

# In a test of the library sleeping is only right where time is virtual: in a
# package whose tests use testing/synctest.
check_sleeps() {
  local file
  while read -r file; do
    grep -q '"testing/synctest"' "$(dirname "$file")"/*_test.go ||
      die "$file: time.Sleep in a package without virtual time: wait for a signal"
  done < <(grep -rl --include='*_test.go' --exclude-dir=test --exclude-dir=.cache 'time\.Sleep(' .)
}

what=$1
shift
# shellcheck disable=SC2068 # the folders have no blanks
case $what in
check)
  check_sleeps
  failed=""
  golangci run ${@/#/./} || failed=yes
  luacheck --config .luacheckrc --no-color --quiet scripts/composed || failed=yes
  GOWORK=off go -C tools build -race=false -o ../.cache/actionlint github.com/rhysd/actionlint/cmd/actionlint
  .cache/actionlint .github/workflows/* || failed=yes
  [ -z "$failed" ]
  ;;
fmt) golangci fmt ${@/#/./} ;;
*) die "unknown: $what" ;;
esac
