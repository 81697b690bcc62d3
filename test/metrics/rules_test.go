package metrics

import (
	"fmt"
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

// ofDays are the lines of tests that look further than 1 000 minutes ahead.
var ofDays = regexp.MustCompile(`(?m)^ +- \{eval_time: \d{4,}m, .*\n`)

// TestEachRuleIsTestedBothWays has all rules never fire, and then always: a test of each must notice. No rule here is made of
// another, so that what a test says is of the rule that it names.
func TestEachRuleIsTestedBothWays(t *testing.T) {
	t.Parallel()
	tool := program(t, "promtool")
	text, err := os.ReadFile(rules)
	require.NoError(t, err)
	tests, err := os.ReadFile(rulesTest)
	require.NoError(t, err)
	tests = ofDays.ReplaceAll(tests, nil) // they cost more than all others, and fewer tests notice no more
	all := ruleLine.FindAllStringSubmatch(string(text), -1)
	require.Len(t, all, strings.Count(string(text), " expr: "))
	for _, expression := range []string{"vector(1) > 1", "vector(1)"} {
		folder := t.TempDir()
		broken := ruleLine.ReplaceAllString(string(text), "      - $1: $2\n        expr: "+expression+"\n")
		require.NoError(t, os.WriteFile(folder+"/rules.yml", []byte(broken), 0o600))
		require.NoError(t, os.WriteFile(folder+"/rules_test.yml", tests, 0o600))
		out, err := exec.CommandContext(t.Context(), tool, "test", "rules", folder+"/rules_test.yml").CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, "nobody notices that all rules are %s: %s", expression, out)
		require.NotContains(t, string(out), "yaml:", "%s", broken)
		for _, rule := range all {
			noticed := map[string]string{"alert": `alertname: %s, time: `, "record": `expr: "%s", time: `}[rule[1]]
			require.Contains(t, string(out), fmt.Sprintf(noticed, rule[2]), "nobody notices that %s is %s", rule[2], expression)
		}
	}
}
