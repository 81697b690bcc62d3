// Package amount says how much a test does.
package amount

import (
	"flag"
	"os"
	"strconv"
)

// Times is how many times as much a test does of what could go on for ever: 1, and in `make nightly` what BERTH_TEST_TIMES
// says.
func Times() int {
	if n, err := strconv.Atoi(os.Getenv("BERTH_TEST_TIMES")); err == nil {
		return n
	}
	return 1
}

// Histories makes n, [Times] that, the number of random histories that rapid.Check runs in this package, unless the command
// line says -rapid.checks. The first test of a package that says a number says it for all.
func Histories(n int) error {
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue {
		return nil
	}
	return f.Value.Set(strconv.Itoa(n * Times()))
}
