#!/usr/bin/env bash
# steps.sh TARGET...: make each target, with its name and time, and stop at the
# first that fails.
set -euo pipefail
cd "$(dirname "$0")/.."

report=""
for target in "$@"; do
  printf '\n==> make %s\n' "$target"
  begin=$SECONDS
  if ! "${MAKE:-make}" --no-print-directory "$target"; then
    printf '\n==> make %s FAILED after %d s\n' "$target" $((SECONDS - begin)) >&2
    exit 1
  fi
  report+=$(printf '  %-16s %4d s' "$target" $((SECONDS - begin)))$'\n'
done

printf '\n==> all passed in %d s\n%s' "$SECONDS" "$report"
