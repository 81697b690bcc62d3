package commands_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

// TestEachAlertNamesACommandThatFindsIt runs them, on a server that has nothing.
func TestEachAlertNamesACommandThatFindsIt(t *testing.T) {
	t.Parallel()
	text := apptest.Got(os.ReadFile("../../../../deploy/prometheus/rules.yml"))(t)
	url, runs := apptest.Server(t).URL(), 0
	for _, line := range regexp.MustCompile(`(?m)^ +run: (.*)$`).FindAllStringSubmatch(string(text), -1) {
		runs++
		for command := range strings.SplitSeq(line[1], ", then ") {
			words := strings.Fields(command)
			if words[0] == "systemctl" || words[0] == "journalctl" { // of the exporter
				continue
			}
			require.Equal(t, "berth", words[0], command)
			r := apptest.Call(t, url, words[1:]...)
			assert.Contains(t, []int{0, 1}, r.Code, "%s: %s", command, r.Err)
		}
	}
	require.Equal(t, strings.Count(string(text), "- alert: "), runs)
}
