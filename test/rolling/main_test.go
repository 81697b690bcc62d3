package rolling

import (
	"fmt"
	"os"
	"testing"

	"github.com/berth-go/berth/test/harness"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	released, err := versions(keptIn)
	if err == nil && len(released) == 0 {
		err = keepToday()
		defer func() { _ = os.RemoveAll(keptIn) }()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return harness.Main(m)
}
