package rolling

import (
	"os"
	"testing"

	"github.com/berth-go/berth/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
