//go:build unix

// Command suite is `make check`, `make test` and `make ci`. It says what it will do and
// how long that takes about, does all of it side by side, whatever fails, tells how far it
// is, and ends with what failed and how to run that again. What failed in a test while the machine
// was late (see internal/testkit/lag) is run again when all else has ended, alone, twice at
// most. The exit code is 1 if anything failed or was not run, and 75 if the machine was late each time that it failed.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage, in the repository's root: suite check | test | ci")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second Ctrl-C waits for nothing
	code, err := run(ctx, os.Args[1])
	if err != nil {
		fmt.Fprintf(os.Stderr, "suite: %v\n", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, command string) (code int, err error) {
	dir, err := os.MkdirTemp("", "berth-suite")
	if err != nil {
		return codeFailed, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bare, err := withoutServers()
	if err != nil {
		return codeFailed, err
	}
	docker := filepath.Join(dir, "docker")
	if err := os.Mkdir(docker, 0o750); err != nil {
		return codeFailed, err
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOFLAGS").Output()
	if err != nil {
		return codeFailed, err
	}
	goflags := "GOFLAGS=" + built + " " + strings.TrimSpace(string(out)) // those of the caller count
	p, ok := plans(places{bare, docker, goflags})[command]
	if !ok {
		return codeFailed, fmt.Errorf("no command %q", command)
	}
	s := newSuite(command, p, newConsole(os.Stdout))
	// A GOGC of the caller's comes later, and counts. The race detector needs cgo.
	s.env = slices.Concat([]string{lazily}, os.Environ(), []string{"CGO_ENABLED=1", goflags})
	s.report = filepath.Join(dir, "report")
	return s.run(ctx), nil
}

// withoutServers makes a folder whose redis-server, valkey-server and docker fail: with it
// in front of PATH the tests of the library cannot lean on any. It is always the same one,
// or the go command would never find the result of a test again.
func withoutServers() (string, error) {
	dir, err := filepath.Abs(".cache/without-servers")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	for _, program := range []string{"redis-server", "valkey-server", "docker"} {
		path := filepath.Join(dir, program)
		text := "#!/bin/sh\necho 'the tests of the library run without " + program + "' >&2\nexit 1\n"
		if old, err := os.ReadFile(path); err == nil && string(old) == text {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			return "", err
		}
	}
	return dir, nil
}
