package integration

import (
	"os"
	"testing"

	"github.com/berth-go/berth/test/harness"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(childSpec); spec != "" {
		os.Exit(beChild(spec))
	}
	os.Exit(harness.Main(m))
}
