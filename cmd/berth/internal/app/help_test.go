package app_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

func TestTheFlagsOfAllCommandsAreShownOnce(t *testing.T) {
	t.Parallel()
	help := func(line string) string {
		return apptest.Call(t, apptest.Nobody, strings.Fields(line)...).Ends(t, 0).Out
	}
	flags := help("help flags")
	for _, flag := range []string{"--json", "--namespace", "--redis URL", "--redis-ca", "--redis-cert", "--redis-key", "--help", "master_set"} {
		require.Contains(t, flags, flag)
	}
	for _, line := range []string{"--help", "run --help", "help sem", "sem pause --help", "help pool binding set"} {
		text := help(line)
		require.NotContains(t, text, "--redis-cert", line)
		require.NotContains(t, text, "--help ", line)
		require.Regexp(t, `\n\nFlags of all commands, how the server is given, exit codes: 'berth help flags'\.\n$`, text)
	}
	require.Contains(t, help("--help"), "\nTopics:\n  flags ")
	require.Contains(t, help("sem pause --help"), "\nFlags:\n      --all ")
	require.Contains(t, help("sem --help"), "\nUsage:\n  berth sem COMMAND\n")
}

func TestHelpOfWhatIsNoCommand(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"help sem shwo": `unknown command "shwo" for "berth sem". Did you mean this? show`,
		"help lok":      `unknown command "lok" for "berth". Did you mean this? lock`,
		"help run x":    `unknown command "x" for "berth run"`,
	} {
		require.Equal(t, apptest.Outcome(64, "", "berth: "+says+"\nSee 'berth help --help'.\n"), apptest.Call(t, apptest.Nobody, strings.Fields(line)...))
	}
}

func TestEachFlagOfRunHasAHeading(t *testing.T) {
	t.Parallel()
	text := apptest.Call(t, apptest.Nobody, "run", "--help").Out
	_, flags, _ := strings.Cut(text, "./play.sh\n")
	require.NotContains(t, flags, "\nFlags:\n")
	for _, heading := range []string{"What to wait for", "Semaphore", "Lock", "Pool", "Once", "Waiting", "Holding"} {
		require.Contains(t, flags, "\n"+heading+":\n      --")
	}
}
