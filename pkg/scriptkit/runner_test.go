package scriptkit

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

// exact are options without chance.
func exact() Options { return Options{Retry: berth.Retry{Jitter: -1}} }

// simple takes one key and one argument and answers ok.
func simple(t testing.TB) *Script {
	t.Helper()
	return script(Script{
		Keys: []Key{{Name: "state", Type: "hash"}}, Args: []string{"value"}, Commands: []string{"HGET", "HSET"},
		Returns: []Return{{Status: "ok", Fields: []string{"value"}}},
	},
		`redis.call("HSET", KEYS[1], "f", ARGV[1]) return {"ok", redis.call("HGET", KEYS[1], "f")}`)
}

// run runs simple's script with a key and an argument.
func run(ctx context.Context, r *Runner, s *Script, mode Mode) (Reply, error) {
	return r.Run(ctx, s, mode, []string{"{gpu}:state"}, []string{"secret"})
}

func TestRunSendsTheSourceAtOnceAndThenOnlyToAServerThatDoesNotKnowIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := simple(t)
		known := false
		server := newFakeServer(t, func(_ int, command []string) string {
			known = known || command[0] == "EVAL" && command[1] == s.Source()
			if !known {
				return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
			}
			return table("ok", "1")
		})
		runner := NewRunner(server.client(t), exact())
		for i := range 4 {
			known = known && i != 2 // as after SCRIPT FLUSH
			r, err := run(t.Context(), runner, s, Once)
			require.NoError(t, err)
			require.False(t, r.Unanswered)
		}
		require.Equal(t, [][]string{
			{"EVAL", s.Source(), "1", "{gpu}:state", "secret"},
			{"EVALSHA", s.SHA, "1", "{gpu}:state", "secret"},
			{"EVALSHA", s.SHA, "1", "{gpu}:state", "secret"},
			{"EVAL", s.Source(), "1", "{gpu}:state", "secret"},
			{"EVALSHA", s.SHA, "1", "{gpu}:state", "secret"},
		}, server.commands)
	})
}

func TestRunOnTheEmbeddedServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, server := embedded(t)
		runner := NewRunner(client, Options{})
		for range 2 {
			r, err := run(t.Context(), runner, simple(t), Bounded)
			require.NoError(t, err)
			require.Equal(t, "secret", r.Str(1))
			require.NoError(t, r.Err())
		}
		require.Equal(t, "secret", server.HGet("{gpu}:state", "f"))
	})
}

func TestRunRefusesAWrongNumberOfKeysOrArgs(t *testing.T) {
	t.Parallel()
	fixed := script(Script{Keys: []Key{{Name: "a", Type: "set"}, {Name: "b", Type: "set"}}, Args: []string{"x"}}, `return {"ok"}`)
	group := script(Script{Args: []string{"x"}, Group: []string{"p", "q"}}, `return {"ok"}`)
	tests := []struct {
		name       string
		script     *Script
		keys, args int
		want       string
	}{
		{"too few keys", fixed, 1, 1, "invalid keys: the script takes 2 (a, b), not 1"},
		{"too many keys", fixed, 3, 1, "invalid keys: the script takes 2 (a, b), not 3"},
		{"too few args", fixed, 2, 0, "invalid args: the script takes 1 (x), not 0"},
		{"too many args", fixed, 2, 2, "invalid args: the script takes 1 (x), not 2"},
		{"too few args before a group", group, 0, 0, "invalid args: the script takes 1 (x) and groups of 2 (p, q), not 0"},
		{"half a group", group, 0, 4, "invalid args: the script takes 1 (x) and groups of 2 (p, q), not 4"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			runner := NewRunner(nil, Options{}) // nothing may be sent
			_, err := runner.Run(t.Context(), tt.script, Bounded, make([]string, tt.keys), make([]string, tt.args))
			require.ErrorIs(t, err, berth.ErrInvalidConfig)
			require.ErrorContains(t, err, tt.want)
			require.False(t, MaybeRan(err))
			require.False(t, Repeatable(err))
		})
	}
	for _, n := range []int{1, 3, 5} {
		require.NoError(t, group.checkCounts(0, n))
	}
	require.NoError(t, fixed.checkCounts(2, 1))
}
