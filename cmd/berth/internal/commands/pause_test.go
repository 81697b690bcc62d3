package commands

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/keyspace"
)

func TestPauseAndUnpause(t *testing.T) {
	t.Parallel()
	for group, noun := range map[string]string{"sem": "semaphore", "lock": "lock", "pool": "pool"} {
		url := apptest.Server(t).URL()
		require.Equal(t, apptest.Outcome(0, noun+" gpu: paused for 2h00m: \"a\\nb\"\n", ""),
			apptest.Call(t, url, group, "pause", "gpu", "--for", "2h", "--reason", "a\nb"))
		require.Equal(t, apptest.Outcome(0, noun+" gpu: paused for 1m00s\n", ""), apptest.Call(t, url, group, "pause", "gpu", "--for", "1m"))
		require.JSONEq(t, `{"namespace": "berth", "kind": "`+group+`", "name": "gpu", "pause": {"leftMs": 90000, "reason": "why"}}`,
			apptest.Call(t, url, group, "pause", "gpu", "--for", "90s", "--reason", "why", "--json").Out)
		require.Equal(t, apptest.Outcome(0, noun+" gpu: no longer paused\n", ""), apptest.Call(t, url, group, "unpause", "gpu"))
		require.Equal(t, apptest.Outcome(0, noun+" gpu: it was not paused\n", ""), apptest.Call(t, url, group, "unpause", "gpu"))
		require.JSONEq(t, `{"namespace": "berth", "kind": "`+group+`", "name": "gpu", "pause": null}`, apptest.Call(t, url, group, "unpause", "gpu", "--json").Out)
	}
}

func TestAPauseIsShown(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	sem := apptest.SemOf(t, s, "gpu", 2)
	apptest.Got(sem.Acquire(context.Background(), nil))(t)
	apptest.Filled(t, s, "gpu", "a")
	ctx, leave := context.WithCancel(context.Background())
	t.Cleanup(leave)
	for _, group := range []string{"sem", "lock", "pool"} {
		require.NotContains(t, apptest.Call(t, s.URL(), group, "ls").Out, "PAUSED")
		require.Zero(t, apptest.Call(t, s.URL(), group, "pause", "gpu", "--for", "2h", "--reason", "a\nb").Code)
		require.Regexp(t, `(?s)^NAME[^\n]*PAUSED *\ngpu [^\n]*(2h00m|1h59m)`, apptest.Call(t, s.URL(), group, "ls").Out, "also one that is idle")
		require.Regexp(t, `"leftMs": \d+,\s+("since": "[^"]*",\s+)?"reason": "a\\nb"`, apptest.Call(t, s.URL(), group, "ls", "--json").Out)
		shown := apptest.Call(t, s.URL(), group, "show", "gpu").Ends(t, 0)
		require.Regexp(t, `\npaused for (2h00m|1h59m) more: "a\\nb"\n`, shown.Out)
		require.Contains(t, apptest.Call(t, s.URL(), group, "show", "gpu", "--json").Out, `"pause": {`)
	}
	go func() { _, _ = sem.Acquire(ctx, nil) }()
	apptest.WaitingFor(t, s, keyspace.Sem, "gpu")
	require.Contains(t, apptest.Call(t, s.URL(), "ps", "--waiting").Out, " waits, paused ")
	require.Contains(t, apptest.Call(t, s.URL(), "ps", "--json").Out, `"pausedMs"`)
}

// A command that does not wait, or has waited in vain, tells of the pause, also of one of all names.
func TestRunOfAPausedName(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	ops := apptest.OpsOf(t, s)
	require.NoError(t, ops.Pause(ctx, keyspace.Sem, "gpu", time.Hour, "migration"))
	apptest.Got(ops.PauseAll(ctx, 10*time.Hour, "migration", keyspace.Lock))(t)
	apptest.Filled(t, s, "gpu", "a")
	require.Zero(t, apptest.Call(t, s.URL(), "pool", "pause", "gpu", "--for", "10h", "--reason", "migration").Code)
	const more = `, paused for (10h00m|9h59m|1h00m|59m\d\ds) more: "migration"`
	for says, args := range map[string][]string{
		`capacity 1, held 0, waiting \d` + more:                      {"--sem", "gpu", "--capacity", "1"},
		`waiting \d` + more:                                          {"--lock", "nobody's"},
		`"a" waiting \d` + more + `; "b" waiting \d` + more:          {"--lock", "a", "--lock", "b"},
		`1 resource, 1 free, 0 leased, 0 resting, waiting \d` + more: {"--pool", "gpu"},
		`a is free` + more:                                           {"--pool", "gpu", "--resource", "a"},
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			got := apptest.Call(t, s.URL(), append(append([]string{"run", "--try"}, args...), "--", "true")...)
			require.Equal(t, 75, got.Code)
			require.Regexp(t, `^berth: .* not acquired: paused for [\dhm]+\d+s: migration\n$`, got.Err)
			got = apptest.Call(t, s.URL(), append(append([]string{"run", "--wait", "12s"}, args...), "--", "true")...)
			require.Equal(t, 75, got.Code)
			require.Regexp(t, `not acquired: timed out after \S+(; paused for [\dhm]+\d+s: migration| \(`+says+`\))\n$`, got.Err)
		})
	}
}
