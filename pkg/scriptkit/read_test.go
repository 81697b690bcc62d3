package scriptkit

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

// served answers TIME, and what else a test wants.
func served(answer func(n int, command []string) string) func(int, []string) string {
	return func(n int, command []string) string {
		if command[0] == "TIME" {
			return table("1700000000", "123456")
		}
		return answer(n, command)
	}
}

func reads(ctx context.Context, r *Runner, from From) (Answers, error) {
	return r.Read(ctx, "holders", from,
		Command{Verb: []string{"HLEN"}, Keys: []string{"{gpu}:state"}},
		Command{Verb: []string{"ZRANK"}, Keys: []string{"{gpu}:line"}, Args: []string{"w"}})
}

func TestAReadTellsWhenAndLeavesTheErrorsOfCommandsToItsCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := newFakeServer(t, served(func(_ int, command []string) string {
			if command[0] == "ZRANK" {
				return "$-1\r\n"
			}
			return "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
		}))
		got := must(reads(t.Context(), NewRunner(server.client(t), exact()), From{Primary: true})).in(t)
		require.EqualValues(t, 1_700_000_000_123, got.Now)
		require.False(t, got.Replica, "a server that does not know HELLO is no replica")
		require.True(t, IsWrongType(got.Results[0].Error()))
		require.True(t, rueidis.IsRedisNil(got.Results[1].Error()))
		require.Equal(t, []string{"TIME", "HLEN", "ZRANK"}, server.seen())
	})
}

func TestAReadIsRepeatedWhereACommandDidNotRun(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"-LOADING\r\n", "-BUSY\r\n", "-TRYAGAIN\r\n", "-CLUSTERDOWN\r\n", "-MASTERDOWN\r\n", drop} {
		for _, verb := range []string{"HELLO", "TIME", "ZRANK"} {
			if answer == drop && verb == "HELLO" {
				continue // rueidis asks so when it connects, too
			}
			bubbleOf(t, strings.Fields(answer)[0][1:]+" "+verb, func(t *testing.T) {
				failures := 2
				of := func(word, good string) string {
					if word == verb && failures > 0 {
						failures--
						return answer
					}
					return good
				}
				server := newFakeServer(t, func(_ int, command []string) string {
					if command[0] == "TIME" {
						return of("TIME", table("1700000000", "123456"))
					}
					return of(command[0], ":7\r\n")
				})
				server.hello = func() string { return of("HELLO", table("role", "master")) }
				opts := exact()
				var repeated []string
				opts.OnRetry = func(_ context.Context, what string, _ int, _ error) { repeated = append(repeated, what) }
				got := must(reads(t.Context(), NewRunner(server.client(t), opts), From{Primary: true})).in(t)
				n := must(got.Results[1].AsInt64()).in(t)
				require.EqualValues(t, 7, n)
				require.Equal(t, []string{"holders", "holders"}, repeated)
			})
		}
	}
}

// The answers of another command, of a proxy, of a broken server.
func TestAnAnswerOfAnotherShapeIsAnErrorAndNothingElse(t *testing.T) {
	t.Parallel()
	key := []string{"{gpu}:state"}
	commands := map[string]Command{
		"TIME": {}, "HELLO": {},
		"HLEN":          {Keys: key},
		"HMGET":         {Keys: key, Args: []string{"a", "b"}},
		"HSCAN":         {Keys: key, Args: []string{"7"}},
		"INFO":          {Optional: true},
		"MGET":          {Keys: []string{"{gpu}:a", "{gpu}:b"}},
		"SCAN":          {Verb: []string{"SCAN", "7"}},
		"TYPE":          {Keys: key},
		"ZCOUNT":        {Keys: key},
		"ZMSCORE":       {Keys: key, Args: []string{"a", "b"}},
		"ZRANGE":        {Keys: key},
		"ZRANGEBYSCORE": {Keys: key},
		"ZRANK":         {Keys: key},
	}
	fits := map[string][]string{
		"*0\r\n":                              {"HELLO", "ZRANGE", "ZRANGEBYSCORE"},
		table("7"):                            {},
		table("7", "8"):                       {"HELLO", "HMGET", "MGET", "TIME", "ZMSCORE", "ZRANGE", "ZRANGEBYSCORE"},
		table("7", "x"):                       {"HELLO", "HMGET", "MGET"},
		table("7", "8", "9"):                  {},
		table("9999999999999", "8"):           {"HELLO", "HMGET", "MGET", "ZMSCORE", "ZRANGE", "ZRANGEBYSCORE"},
		"*2\r\n$-1\r\n$-1\r\n":                {"HMGET", "MGET", "ZMSCORE"},
		"*2\r\n$1\r\n0\r\n" + table("a"):      {"HELLO", "SCAN"},
		"*2\r\n$1\r\n7\r\n" + table("a", "8"): {"HELLO", "HGETALL"},
		"*1\r\n" + table("a", "8"):            {"ZRANGE", "ZRANGEBYSCORE"},
		"%1\r\n+a\r\n+8\r\n":                  {"HELLO", "HGETALL"},
		"$-1\r\n":                             {"ZRANK"},
		":7\r\n":                              {"HLEN", "ZCOUNT", "ZRANK"},
		"+7\r\n":                              {"INFO", "TYPE"},
		"-WRONGTYPE no\r\n":                   {"HGETALL", "HLEN", "HMGET", "HSCAN", "MGET", "TYPE", "ZCOUNT", "ZMSCORE", "ZRANGE", "ZRANGEBYSCORE", "ZRANK"},
	}
	for verb, command := range commands {
		synctest.Test(t, func(t *testing.T) {
			said := ""
			server := newFakeServer(t, func(_ int, got []string) string {
				if got[0] == verb {
					return said
				}
				return table("1700000000", "123456")
			})
			r := NewRunner(server.client(t), exact())
			server.hello = func() string {
				if verb == "HELLO" {
					return said
				}
				return table("role", "master")
			}
			var asked []Command
			if len(command.Verb) == 0 {
				command.Verb = []string{verb}
			}
			if verb != "HELLO" && verb != "TIME" {
				asked = append(asked, command)
			}
			for answer, verbs := range fits {
				said = answer
				_, err := r.Read(t.Context(), "holders", From{}, asked...)
				if slices.Contains(verbs, verb) {
					require.NoError(t, err, "%s %q", verb, answer)
					continue
				}
				require.EqualError(t, err, "berth: holders: the answer to "+verb+" has another shape than asked for", "%q", answer)
				require.False(t, Repeatable(err))
				require.NotErrorIs(t, err, berth.ErrUnavailable)
			}
		})
	}
	_, err := NewRunner(nil, exact()).Read(t.Context(), "holders", From{}, Command{Verb: []string{"GET"}, Keys: key})
	require.ErrorIs(t, err, berth.ErrInvalidConfig, "of each verb the shape is known")
}

func TestAReadThatMayNotRunIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	for verb, told := range map[string]string{
		"HELLO": "NOPERM User reader has no permissions to run the 'hello' command",
		"ZRANK": "NOPERM User reader has no permissions to run the 'zrank' command",
	} {
		synctest.Test(t, func(t *testing.T) {
			answer := func(word, good string) string {
				if word == verb {
					return "-" + told + "\r\n"
				}
				return good
			}
			server := newFakeServer(t, served(func(_ int, command []string) string { return answer(command[0], ":7\r\n") }))
			server.hello = func() string { return answer("HELLO", table("role", "master")) }
			_, err := reads(t.Context(), NewRunner(server.client(t), exact()), From{})
			require.EqualError(t, err, "berth: holders: the ACL of this user lacks something that is needed (HLEN, ZRANK): "+told)
			require.False(t, Repeatable(err))
		})
	}
}

func TestWhatDecidesIsNotReadFromAReplica(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := newFakeServer(t, served(func(int, []string) string { return ":7\r\n" }))
		var promoted atomic.Bool
		server.hello = func() string {
			if promoted.Load() {
				return table("server", "redis", "role", "master")
			}
			return table("server", "redis", "role", "replica")
		}
		r := NewRunner(server.client(t), exact())
		got := must(reads(t.Context(), r, From{})).in(t)
		require.True(t, got.Replica)

		begun := time.Now()
		_, err := reads(t.Context(), r, From{Primary: true})
		require.ErrorIs(t, err, berth.ErrUnavailable)
		require.ErrorContains(t, err, "berth: holders: a replica answered")
		require.True(t, Repeatable(err))
		require.False(t, MaybeRan(err))
		require.LessOrEqual(t, time.Since(begun), 10*time.Second)

		time.AfterFunc(time.Second, func() { promoted.Store(true) })
		got = must(reads(t.Context(), r, From{Primary: true})).in(t)
		require.False(t, got.Replica)
	})
}

func TestAReadLeavesOutWhatItsCallerWasTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		hello := 0
		server := newFakeServer(t, served(func(_ int, command []string) string {
			if command[0] == "ZRANK" {
				return "-NOPERM no\r\n"
			}
			return ":7\r\n"
		}))
		server.hello = func() string { hello++; return table("server", "redis", "role", "replica") }
		r := NewRunner(server.client(t), exact())
		optional := Command{Verb: []string{"ZRANK"}, Keys: []string{"{gpu}:line"}, Optional: true}
		hello = 0
		got, err := r.Read(t.Context(), "holders", From{Unasked: true, Untimed: true}, Command{Verb: []string{"HLEN"}, Keys: []string{"{gpu}:state"}}, optional)
		require.NoError(t, err)
		require.Zero(t, hello)
		require.Zero(t, got.Now)
		require.False(t, got.Replica)
		n := must(got.Results[0].AsInt64()).in(t)
		require.EqualValues(t, 7, n)
		require.ErrorContains(t, got.Results[1].Error(), "NOPERM", "it is told with its result")
		require.Equal(t, []string{"HLEN", "ZRANK"}, server.seen())

		_, err = r.Read(t.Context(), "holders", From{Unasked: true, Primary: true}, optional)
		require.ErrorContains(t, err, "a replica answered", "who decides always asks")
		optional.Optional = false
		require.ErrorContains(t, second(r.Read(t.Context(), "holders", From{Unasked: true}, optional)), "NOPERM")
	})
}

// seen is a client that looks at what is sent.
type seenClient struct {
	rueidis.Client
	look func(rueidis.Completed)
}

func (c seenClient) DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult {
	for _, command := range multi {
		c.look(command)
	}
	return c.Client.DoMulti(ctx, multi...)
}

func TestRueidisDoesNotKnowThatAReadReads(t *testing.T) {
	t.Parallel()
	client, _ := embedded(t)
	sent := 0
	r := NewRunner(seenClient{client, func(c rueidis.Completed) {
		sent++
		require.False(t, c.IsReadOnly(), "a usual SendToReplicas would send it to a replica")
		require.False(t, c.IsRetryable(), "rueidis would repeat it, on a replica perhaps")
	}}, exact())
	must(reads(t.Context(), r, From{})).in(t)
	require.Equal(t, 4, sent)
	_, err := reads(t.Context(), NewRunner(client, exact()), From{Node: client, Primary: true})
	require.NoError(t, err, "the embedded server does not know HELLO without arguments")
}

func TestALongReadNeedsNoRoomOnTheConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, _ := embedded(t)
		var commands []Command
		for range 300 {
			commands = append(commands, Command{
				Verb: []string{"HMGET"}, Keys: []string{"{gpu}:state"}, Args: []string{strings.Repeat("x", 10_000)},
			})
		}
		must(NewRunner(client, Options{}).Read(t.Context(), "rows", From{}, commands...)).in(t)
	})
}

func TestAReadWhoseContextHasEndedSendsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := newFakeServer(t, answers(hang))
		ctx, cancel := context.WithCancel(t.Context())
		client := server.client(t)
		cancel()
		_, err := reads(ctx, NewRunner(client, exact()), From{})
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, berth.ErrUnavailable)
		require.Empty(t, server.seen())

		begun := time.Now()
		require.ErrorIs(t, second(reads(t.Context(), NewRunner(client, exact()), From{})), berth.ErrUnavailable)
		require.Equal(t, 10*time.Second, time.Since(begun), "each attempt has its limit, and Retry.Within ends all")
	})
}
