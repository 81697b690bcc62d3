#!/usr/bin/env bash
# consumer.sh PROXY VERSION: be a user of a release that stands in a file GOPROXY. An application with older modules adds
# Berth. It must build; and beyond what the packages that it
# links bring by themselves, only modules that Berth names in its own go.mod as
# direct requirements may be newer than before. Told is what Berth adds to the go.sum and
# the module graph of the smallest application, which must have nothing of OpenTelemetry or Prometheus. The programs of
# the README compile and run. Then the command, a module of its own, is installed by its version.
# Last, an application builds with each module of contrib alone.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/lib.sh

proxy=$1 version=$2
work=$(mktemp -d)
served=""
trap 'kill $served 2>/dev/null || true; chmod -R u+w "$work" && rm -rf "$work"' EXIT
module=github.com/berth-go/berth
export GOWORK=off # what a user has is no workspace

folders=(. cmd/berth contrib/*) # of modules that others may require
for file in "${folders[@]/%//go.mod}"; do
  if grep -Eq '^[[:space:]]*(replace|toolchain|exclude)\b' "$file"; then
    die "$file: a replace, exclude or toolchain line keeps others from requiring it"
  fi
done

# What Berth requires for itself, and what an application links with it.
go list -m -f '{{if not (or .Main .Indirect)}}{{.Path}}{{end}}' all | sort -u >"$work/direct"
go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{end}}{{end}}' \
  . ./pkg/... | sort -u >"$work/linked"

# A module cache of its own: the version that is tried is no release, and must
# not be found by anybody later.
export GOPROXY="file://$proxy,file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)"
export GOMODCACHE="$work/cache" GONOSUMDB="$module,$module/*,$(go env GONOSUMDB)"
# By -trimpath what the release has built is found, whatever the cache of modules is.
export CGO_ENABLED=0 GOFLAGS='-trimpath -mod=mod -modcacherw'

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

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

func main() {
	var redis rueidis.Client
	n, err := node.New(redis, node.Config{})
	fmt.Println(semaphore.New(n, "x", 1, semaphore.Config{}).Name(), err)
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

mkdir "$work/least"
cat >"$work/least/main.go" <<'END'
package main

import "github.com/redis/rueidis"

func main() {
	var redis rueidis.Client
	_ = redis
}
END
(cd "$work/least" && go mod init example.com/least && go get "$(grep -o '^github.com/redis/rueidis@.*' "$work/linked")" && go mod tidy) 2>"$work/get.log" ||
  die "the smallest application: $(cat "$work/get.log")"

# size: the lines of its go.sum, the modules that these name, the modules of its graph.
size() {
  local lines named
  lines=$(wc -l <"$work/least/go.sum")
  named=$(cut -d' ' -f1 "$work/least/go.sum" | sort -u | wc -l)
  echo "$lines lines in go.sum for $named modules, and $(go -C "$work/least" list -m all | wc -l) modules in the graph"
}

say "the smallest application has, with rueidis alone, $(size)"
cp "$work/app/main.go" "$work/least"
(cd "$work/least" && go get "$module@$version" && go mod tidy) 2>"$work/get.log" ||
  die "the smallest application: $(cat "$work/get.log")"
say "with Berth, $(size)"

# What the packages that it builds with come from, and what its go.sum names.
{ go -C "$work/least" list -deps -f '{{with .Module}}{{.Path}}{{end}}' . && cut -d' ' -f1 "$work/least/go.sum"; } |
  sort -u >"$work/named"
grep -qx "$module" "$work/named" || die "the smallest application does not build with Berth"
if telemetry=$(grep -Ei 'opentelemetry|prometheus' "$work/named"); then
  die "the library alone brings telemetry to an application:
$telemetry"
fi

# The README's first program, and its examples below "Use it" in a program with what they leave out, on an embedded server.
mkdir "$work/app/"{server,first,use}
cat >"$work/app/server/main.go" <<'END'
package main

import (
	"fmt"
	"log"

	"github.com/berth-go/berth/pkg/embedded"
)

func main() {
	server, err := embedded.StartListening("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(server.URL())
	select {}
}
END
go -C "$work/app" build -o server.exe ./server || die "a program with the embedded server does not build"
"$work/app/server.exe" >"$work/url" &
served=$!
until grep -q . "$work/url"; do kill -0 $served || die "the embedded server has ended"; sleep 0.1; done

# block N: the Nth block of Go in the README.
block() { awk -v n="$1" '/^```go$/ { on = ++i == n; next } /^```$/ { on = 0 } on' README.md; }
block 1 | sed "s#redis://127.0.0.1:6379#$(cat "$work/url")#" >"$work/app/first/main.go"
{
  cat <<'END'
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/semaphore"
)

var errThrottled = errors.New("throttled")

func train(_ context.Context, fence int64) error { log.Println("trained; fence", fence); return nil }

func list(context.Context) ([]string, error) { return []string{"proxy-a"}, nil }

func open(context.Context, string) (*http.Client, error) { return http.DefaultClient, nil }

func fetch(context.Context, *http.Client) error { return errThrottled }

END
  sed -n '/^func main/,/defer n.Close/p' "$work/app/first/main.go"
  printf '\tctx := context.Background()\n'
  block 2
  printf '\tlog.Println("used:", err, digest.Name(), scheduler.Name())\n}\n'
} >"$work/app/use/main.go"
# runs FOLDER WORDS...: the program there ends well, and says all words.
runs() {
  local said words
  said=$(timeout 300 go -C "$work/app" run "./$1" 2>&1) || die "the README's program in $1: $said"
  for words in "${@:2}"; do
    [[ $said == *"$words"* ]] || die "the README's program in $1 does not say '$words': $said"
  done
}
runs first "alone; fence" "released: <nil>"
runs use "trained; fence" "used: throttled digest scheduler"
modules ran
diff "$work/after" "$work/ran" >&2 || die "the README's programs need other modules"
say "the README's programs run"

GOBIN="$work/bin" GOFLAGS=${GOFLAGS/-mod=mod/} go install "$module/cmd/berth@$version" 2>"$work/get.log" ||
  die "go install: $(cat "$work/get.log")"
[[ $("$work/bin/berth" version) == "berth version $version, "* ]] || die "the installed command is $("$work/bin/berth" version)"
[[ $("$work/bin/berth" demo --help) == *"with real processes"* ]] || die "the installed command has no demo"
say "go install $module/cmd/berth@$version works"

for folder in contrib/*; do
  app=$work/$folder
  mkdir -p "$app"
  printf 'package main\n\nimport _ "%s"\n\nfunc main() {}\n' "$module/$folder" >"$app/main.go"
  (cd "$app" && go mod init example.com/app && go get "$module/$folder@$version" && go build -o app .) 2>"$work/get.log" ||
    die "an application with $module/$folder: $(cat "$work/get.log")"
  say "an application builds with $module/$folder@$version, and $(go -C "$app" list -m all | wc -l) modules in the graph"
done
