#!/usr/bin/env bash
# vet.sh differ|all: go vet for macOS and Windows of the library and the command. With differ it looks only at
# packages that have files for some systems alone, and nothing is compiled for another system.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/lib.sh

systems=(darwin windows)
all=(./... ./cmd/berth/...)
what=$1
if [ "$what" = differ ]; then
  GOWORK=off go -C tools build -race=false -o ../.cache/vet ./vet # it reads much, and the detector would slow it down
  differ=""
  for os in linux "${systems[@]}"; do
    differ+=$(GOOS=$os CGO_ENABLED=0 GOFLAGS='' go list -f '{{if .IgnoredGoFiles}}{{.ImportPath}}{{end}}' "${all[@]}")$'\n'
  done
  mapfile -t all < <(sort -u <<<"$differ" | sed '/^$/d')
  [ ${#all[@]} -gt 0 ] || die "no package differs, which is not so"
fi
failed=""
for os in "${systems[@]}"; do
  say "go vet for $os of ${all[*]//github.com\/berth-go\/berth/.}"
  vet=(go vet)
  if [ "$what" = differ ]; then vet=(.cache/vet); fi
  GOOS=$os CGO_ENABLED=0 GOFLAGS='' "${vet[@]}" "${all[@]}" || failed=yes
done
[ -z "$failed" ]
