#!/usr/bin/env bash
# size.sh: print the size in bytes of the program that the README begins with, which has one lock, and that of the smallest
# one with rueidis alone; both as programs are shipped: linked statically, without symbols, for linux/amd64.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/lib.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/least.go" <<'END'
package main

import (
	"context"
	"log"

	"github.com/redis/rueidis"
)

func main() {
	redis, err := rueidis.NewClient(rueidis.MustParseURL("redis://127.0.0.1:6379"))
	if err != nil {
		log.Fatal(err)
	}
	log.Println(redis.Do(context.Background(), redis.B().Ping().Build()).Error())
}
END

# size PACKAGE
size() {
  CGO_ENABLED=0 GOOS=linux GOARCH=amd64 GOFLAGS='' go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$work/program" "$1"
  stat -c %s "$work/program"
}

say "a program with one lock has $(size ./examples/first) bytes, $(size "$work/least.go") with rueidis alone ($(go env GOVERSION))"
