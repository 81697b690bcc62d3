package metrics

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func promtool(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program(t, "promtool"), args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestPromtoolAcceptsTheRulesAndTheirTests(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", rules)
	promtool(t, "test", "rules", rulesTest)
}

var ruleLine = regexp.MustCompile(`(?m)^ +- (alert|record): (\S+)\n +expr: (>-\n(?: {10,}.*\n)+|.*\n)`)

// TestEachRuleIsTestedBothWays has each rule in turn never fire, and always: the tests must notice.
func TestEachRuleIsTestedBothWays(t *testing.T) {
	t.Parallel()
	tool := program(t, "promtool")
	text, err := os.ReadFile(rules)
	require.NoError(t, err)
	tests, err := os.ReadFile(rulesTest)
	require.NoError(t, err)
	all := ruleLine.FindAllSubmatchIndex(text, -1)
	require.Len(t, all, strings.Count(string(text), " expr: "))
	for _, at := range all {
		name := string(text[at[4]:at[5]])
		for _, expression := range []string{"vector(1) > 1", "vector(1)"} {
			folder := t.TempDir()
			broken := string(text[:at[6]]) + expression + "\n" + string(text[at[7]:])
			require.NoError(t, os.WriteFile(folder+"/rules.yml", []byte(broken), 0o600))
			require.NoError(t, os.WriteFile(folder+"/rules_test.yml", tests, 0o600))
			out, err := exec.CommandContext(t.Context(), tool, "test", "rules", folder+"/rules_test.yml").CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "nobody notices that %s is %s: %s", name, expression, out)
			require.NotContains(t, string(out), "yaml:", "%s", broken)
		}
	}
}
