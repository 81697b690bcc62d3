package conformance

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/berth-go/berth/test/harness"
)

func TestMain(m *testing.M) {
	code := harness.Main(m)
	if err := report(); err != nil {
		fmt.Fprintf(os.Stderr, "the list of what was not run: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// omitted is what was not run, for the list at the end.
var omitted struct {
	sync.Mutex
	lines []string // guarded by the mutex
}

// omit puts something on the list at the end, and skips it.
func omit(t *testing.T, what, why string) {
	t.Helper()
	omitted.Lock()
	omitted.lines = append(omitted.lines, fmt.Sprintf("  %s: %s", what, strings.ReplaceAll(why, "\n", "; ")))
	omitted.Unlock()
	t.Skip(why)
}

// report prints the list.
func report() error {
	omitted.Lock()
	defer omitted.Unlock()
	if len(omitted.lines) == 0 {
		return nil
	}
	text := "conformance, not run:\n" + strings.Join(omitted.lines, "\n") + "\n"
	fmt.Print(text)
	path := os.Getenv("BERTH_TEST_REPORT")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
