#!/usr/bin/env bash
# consumer.sh: be a user of a release. An application with older modules adds
# Berth from a file GOPROXY. It must build; and beyond what the packages that it
# links bring by themselves, only modules that Berth names in its own go.mod as
# direct requirements may be newer than before. Then the command is installed by
# its version.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/lib.sh

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
module=github.com/berth-go/berth
version=v0.0.1

if grep -Eq '^[[:space:]]*(replace|toolchain|exclude)\b' go.mod; then
  die "go.mod: a replace, exclude or toolchain line keeps go install from working"
fi

# What Berth requires for itself, and what an application links with it.
go list -m -f '{{if not (or .Main .Indirect)}}{{.Path}}{{end}}' all | sort -u >"$work/direct"
go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{end}}{{end}}' \
  . ./pkg/... | sort -u >"$work/linked"

go run ./internal/tools/modproxy -out "$work/proxy" -version "$version"

# A module cache of its own: the version that is tried is no release, and must
# not be found by anybody later.
export GOPROXY="file://$work/proxy,file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)"
export GOMODCACHE="$work/cache" GONOSUMDB="$module,$(go env GONOSUMDB)" GOWORK=off
export GOFLAGS='-mod=mod -modcacherw'

mkdir "$work/app"
cat >"$work/app/go.mod" <<'END'
module example.com/app

go 1.26.0

require (
	github.com/prometheus/client_golang v1.19.0
	github.com/redis/rueidis v1.0.60
	go.opentelemetry.io/otel v1.30.0
	go.uber.org/zap v1.26.0
	golang.org/x/crypto v0.31.0
	golang.org/x/sys v0.28.0
	google.golang.org/protobuf v1.33.0
)
END
cat >"$work/app/main.go" <<'END'
package main

import (
	"fmt"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/semaphore"
)

func main() {
	var redis rueidis.Client
	_, err := semaphore.New(redis, semaphore.Config{})
	fmt.Println(err)
}
END

# modules FILE: the versions of all modules that the application would build with.
modules() { go -C "$work/app" list -m all | awk 'NF == 2' | sort >"$work/$1"; }

# add MODULE@VERSION...
add() { go -C "$work/app" get "$@" 2>"$work/get.log" || die "go get $*: $(cat "$work/get.log")"; }

mapfile -t linked <"$work/linked"
add "${linked[@]}"
modules before
add "$module@$version"
modules after
go -C "$work/app" build -o "$work/app/app" . || die "the application does not build with Berth"

join "$work/before" "$work/after" | awk '$2 != $3' >"$work/changed"
join -v 1 "$work/changed" "$work/direct" >"$work/forced"
[ ! -s "$work/forced" ] || die "Berth forces newer modules on an application:
$(cat "$work/forced")"
say "an application with $(wc -l <"$work/before") modules adds Berth; newer are:"
sed 's/^/  /' "$work/changed"

GOBIN="$work/bin" GOFLAGS=-modcacherw go install "$module/cmd/berth@$version"
"$work/bin/berth" --help >/dev/null || die "the installed command does not run"
say "go install $module/cmd/berth@$version works"
