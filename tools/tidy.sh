#!/usr/bin/env bash
# tidy.sh [-diff] MODULE...
# go mod tidy in the modules. With -diff it writes nothing, and fails if a module is not
# tidy. A module that requires the library by a version, without a replace, is tidied with
# the library of this tree: that version may not be released yet.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/lib.sh

library=github.com/berth-go/berth
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
diff=()
if [ "${1-}" = -diff ]; then diff=(-diff) && shift; fi

# against_tree MODULE: by copies of its go.mod and go.sum; the copy has a replace.
against_tree() {
  cp "$1/go.mod" "$1/go.sum" "$work" &&
    go mod edit -replace "$library=$root" "$work/go.mod" &&
    go -C "$1" mod tidy "${diff[@]}" -modfile "$work/go.mod" || return
  if [ ${#diff[@]} = 0 ]; then
    go mod edit -dropreplace "$library" "$work/go.mod" && cp "$work/go.mod" "$work/go.sum" "$1"
  fi
}

failed=""
for module in "$@"; do
  say "go mod tidy in $module"
  if [ "$module" = . ] || grep -q "^replace $library " "$module/go.mod"; then
    go -C "$module" mod tidy "${diff[@]}" || failed=yes
  else
    against_tree "$module" || failed=yes
  fi
done
[ -z "$failed" ]
