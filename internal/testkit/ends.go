package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// End is a row of the table of docs/errors.md on how a hold ends.
type End struct {
	// Err names what Err matches, "" where the hold goes on.
	Err string
	// Event and Level are the event's.
	Event, Level string
}

// Ends are the rows of that table that a test shows, by how the hold ends. repo is the
// way to the root of the repository.
func Ends(t *testing.T, repo, test string) map[string]End {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repo, "docs", "errors.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "## How a hold ends\n")
	require.True(t, found)
	ends := make(map[string]End)
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "#") {
			break
		}
		cells := strings.Split(strings.Trim(line, "| \n"), "|")
		if len(cells) != 5 {
			continue
		}
		for i := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(cells[i]), "`", "")
		}
		if cells[4] == test {
			ends[cells[0]] = End{Err: cells[1], Event: cells[2], Level: cells[3]}
		}
	}
	return ends
}
