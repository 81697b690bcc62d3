package metrics

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

const (
	// patience bounds what a test waits for.
	patience = 3 * time.Minute
	// prometheusVariable set to required forbids to skip.
	prometheusVariable = "BERTH_TEST_PROMETHEUS"

	rules     = "../../deploy/prometheus/rules.yml"
	rulesTest = "../../deploy/prometheus/rules_test.yml"
	dashboard = "../../deploy/grafana/berth.json"
)

// program is the path of one of Debian's prometheus.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv(prometheusVariable) != "required" {
		t.Skipf("there is no %s: run `make setup`", name)
	}
	require.NoError(t, err)
	return path
}
