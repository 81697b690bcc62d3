package integration

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/berth-go/berth/test/harness"
)

// sideBySide is how many tests run at once, if the command line does not say: most of
// them wait. Those that keep the processors busy take turns.
const sideBySide = "16"

func TestMain(m *testing.M) {
	if spec := os.Getenv(childSpec); spec != "" {
		os.Exit(beChild(spec))
	}
	if err := flag.Set("test.parallel", sideBySide); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(harness.Main(m))
}

var turns sync.Mutex

// turn waits until no other test is busy that takes turns, and is given on when the
// test ends.
func (w *world) turn() *world {
	w.Helper()
	turns.Lock()
	w.Cleanup(turns.Unlock)
	return w
}
