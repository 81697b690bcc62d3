package app_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

// What is no macro of a page is a text that would be taken for one.
var request = regexp.MustCompile(`(?m)^(['.].*)$`)

func TestThePagesOfTheManualSayWhatTheHelpSays(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "man")
	require.Equal(t, apptest.Outcome(0, "", ""), apptest.Call(t, apptest.Nobody, "man", folder))
	files := apptest.Got(filepath.Glob(filepath.Join(folder, "*")))(t)
	pages := map[string]string{}
	for _, file := range files {
		page := string(apptest.Got(os.ReadFile(file))(t))
		pages[filepath.Base(file)] = page
		for _, line := range request.FindAllString(page, -1) {
			require.Regexp(t, `^\.(TH .*|SH .*|PP|EX|EE|BR berth(\\-flags)? \(1\),?)$`, line, file)
		}
	}
	require.NotContains(t, pages, "berth-demo-worker.1")
	require.NotContains(t, pages, "berth-man.1")
	plain := strings.NewReplacer(`\&`, "", `\e`, `\`, `\-`, "-", `\(aq`, "'", `\(ga`, "`", `\(ha`, "^", `\(ti`, "~")
	for _, command := range []string{"", "run", "pool set", "pool binding set", "explain", "events", "completion install"} {
		name := strings.ReplaceAll(strings.TrimSpace("berth "+command), " ", "-") + ".1"
		require.Contains(t, pages, name)
		says := plain.Replace(pages[name])
		help := apptest.Call(t, apptest.Nobody, append(strings.Fields(command), "--help")...).Ends(t, 0).Out
		for line := range strings.Lines(help) {
			if line = strings.TrimRight(line, "\n"); strings.HasSuffix(line, ":") && !strings.HasPrefix(line, " ") || strings.HasPrefix(line, "Flags of all commands,") {
				continue // a heading, and where there is more
			}
			require.Contains(t, says, line, name)
		}
	}
	require.Contains(t, plain.Replace(pages["berth-flags.1"]), "redis://[user:password@]host[:port][/db]")
	require.Contains(t, apptest.Call(t, apptest.Nobody, "man", filepath.Join(folder, "berth.1", "x")).Ends(t, 74).Err, "cannot write the output: ")
}
