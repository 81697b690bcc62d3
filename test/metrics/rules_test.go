package metrics

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
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

// TestEachRuleIsTestedBothWays has each rule in turn never fire, and always: the tests must notice. Those that name the rule
// are asked first, and all of them, which takes seconds, if these do not.
func TestEachRuleIsTestedBothWays(t *testing.T) {
	t.Parallel()
	tool := program(t, "promtool")
	text, err := os.ReadFile(rules)
	require.NoError(t, err)
	tests, err := os.ReadFile(rulesTest)
	require.NoError(t, err)
	const group = "\n  - interval:"
	head, rest, _ := strings.Cut(string(tests), group)
	groups := strings.Split(rest, group)
	noticed := func(broken string, groups []string) (bool, string) {
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(folder+"/rules.yml", []byte(broken), 0o600))
		require.NoError(t, os.WriteFile(folder+"/rules_test.yml", []byte(strings.Join(append([]string{head}, groups...), group)), 0o600))
		out, err := exec.CommandContext(t.Context(), tool, "test", "rules", folder+"/rules_test.yml").CombinedOutput()
		require.NotContains(t, string(out), "yaml:", "%s", broken)
		return errors.As(err, new(*exec.ExitError)), string(out)
	}
	all := ruleLine.FindAllSubmatchIndex(text, -1)
	require.Len(t, all, strings.Count(string(text), " expr: "))
	for _, at := range all {
		name := string(text[at[4]:at[5]])
		naming := slices.DeleteFunc(slices.Clone(groups[1:]), func(g string) bool { return !strings.Contains(g, name) }) // the first names all
		if len(naming) > 0 {
			whole, said := noticed(string(text), naming)
			require.False(t, whole, "the rules as they are: %s", said)
		}
		for _, expression := range []string{"vector(1) > 1", "vector(1)"} {
			broken := string(text[:at[6]]) + expression + "\n" + string(text[at[7]:])
			if len(naming) > 0 {
				if found, _ := noticed(broken, naming); found {
					continue
				}
			}
			found, said := noticed(broken, groups)
			require.True(t, found, "nobody notices that %s is %s: %s", name, expression, said)
		}
	}
}
