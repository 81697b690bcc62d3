// Package guard keeps a panic from ending the process where a goroutine of Berth runs that no caller can guard: what is
// stored, and what a server answers, may be anything.
package guard

import (
	"flag"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/berth-go/berth/internal/caller"
	"github.com/berth-go/berth/pkg/observe"
)

// Meant is what a test has panic to see the recovery.
type Meant string

// strict is "1" in the programs that the tests build; see harness.Build.
var strict string

// Run runs f, a part of Berth. It returns f's error or, if f panics, one that has the panic and its stack; then tell,
// unless it is nil, gets an event of the kind observe.Panicked. The caller sees to it that f's duty goes on, and that f
// does not run again at once. In the tests of Berth a panic stays one, unless it is Meant.
func Run(what string, tell func(observe.Event), f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = Panicked(what, tell, v)
		}
	}()
	return f()
}

// Panicked is Run's error, and tells as Run does, for a deferred function that has recovered v itself.
func Panicked(what string, tell func(observe.Event), v any) (err error) {
	if _, meant := v.(Meant); !meant && tested() {
		panic(v)
	}
	err = fmt.Errorf("please report it: %w", caller.Panicked(what, v))
	if tell != nil {
		defer func() { _ = recover() }() // whoever is told is not Berth's, and the panic may be his
		tell(observe.Event{Kind: observe.Panicked, Detail: what, Err: err})
	}
	return err
}

// tested says that a test of Berth runs, or a program that one has built.
func tested() bool {
	info, ok := debug.ReadBuildInfo()
	return strict != "" || ok && flag.Lookup("test.v") != nil && strings.HasPrefix(info.Main.Path, "github.com/berth-go/berth")
}
