package scriptkit

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

// taken is what RunMany gave for one call.
type taken struct {
	Reply
	err error
}

// many runs calls, and returns what was given for each.
func many(ctx context.Context, t *testing.T, r *Runner, calls []Call) []taken {
	t.Helper()
	all := make([]taken, len(calls))
	var mu sync.Mutex
	var given []int
	r.RunMany(ctx, calls, func(i int, reply Reply, err error) {
		mu.Lock()
		defer mu.Unlock()
		all[i] = taken{reply, err}
		given = append(given, i)
	})
	slices.Sort(given)
	for i := range calls {
		require.Equal(t, i, given[i], "each is given once")
	}
	require.Len(t, given, len(calls))
	return all
}

// calls are calls of a script, the i-th with the i-th key and itself as argument.
func callsOf(s *Script, keys ...string) []Call {
	calls := make([]Call, len(keys))
	for i, key := range keys {
		calls[i] = Call{Script: s, Keys: []string{key}, Args: []string{key}}
	}
	return calls
}

func numbered(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("{%d}", i)
	}
	return keys
}

// pipes counts what a client is asked at once.
type pipes struct {
	rueidis.Client

	mu    sync.Mutex
	sizes []int      // guarded by mu
	keys  [][]string // guarded by mu
	stuck string     // a pipeline with a call for this key hangs until its context ends
}

func (p *pipes) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if cmd.Commands()[0] == "EVALSHA" {
		p.note(cmd)
	}
	return p.Client.Do(ctx, cmd)
}

func (p *pipes) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	if keys := p.note(cmds...); slices.Contains(keys, p.stuck) {
		<-ctx.Done()
	}
	return p.Client.DoMulti(ctx, cmds...)
}

func (p *pipes) note(cmds ...rueidis.Completed) (keys []string) {
	for _, c := range cmds {
		keys = append(keys, append(c.Commands(), "none")[3])
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sizes, p.keys = append(p.sizes, len(cmds)), append(p.keys, keys)
	return keys
}

func TestRunManySendsPipelines(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, _ := embedded(t)
		p := &pipes{Client: client}
		runner := NewRunner(p, Options{})
		s := simple(t)
		_, err := run(t.Context(), runner, s, Once) // which the server knows from here on
		require.NoError(t, err)
		p.sizes = nil
		keys := numbered(121)
		for i, got := range many(t.Context(), t, runner, callsOf(s, keys...)) {
			require.NoError(t, got.err)
			require.Equal(t, "ok", got.Status())
			require.Equal(t, keys[i], got.Str(1))
		}
		require.ElementsMatch(t, []int{50, 50, 21}, p.sizes)
		require.Empty(t, many(t.Context(), t, runner, nil))
	})
}

// A connection in memory has no room for what the other side does not read yet.
func TestAPipelineNeedsNoRoomOnTheConnection(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"a deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Minute)
		},
		"only patience": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return Patient(context.WithoutCancel(ctx)), func() {}
		},
	} {
		bubbleOf(t, name, func(t *testing.T) {
			client, _ := embedded(t)
			ctx, cancel := limit(t.Context())
			defer cancel()
			calls := callsOf(simple(t), numbered(50)...)
			for i := range calls {
				calls[i].Args = []string{strings.Repeat("x", 10_000)}
			}
			for _, got := range many(ctx, t, NewRunner(client, Options{}), calls) {
				require.NoError(t, got.err)
			}
		})
	}
}

func TestRunManySendsTheSourceOfWhatTheServerDoesNotKnow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := simple(t)
		other := script(Script{
			Keys: []Key{{Name: "state", Type: "hash"}}, Args: []string{"value"}, Returns: []Return{{Status: "other"}},
		}, `redis.call("DEL", KEYS[1], ARGV[1]) return {"other"}`)
		var mu sync.Mutex
		var answered []int
		server := newFakeServer(t, func(_ int, command []string) string {
			switch {
			case command[1] == other.SHA:
				return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
			case command[0] == "EVAL":
				mu.Lock()
				defer mu.Unlock()
				if len(answered) != 2 {
					t.Error("those that need no source wait for one that does")
				}
				return table("other")
			}
			return table("ok", command[3])
		})
		calls := callsOf(s, "a", "b", "c")
		calls[1].Script = other
		var words []string
		NewRunner(server.client(t), exact()).RunMany(t.Context(), calls, func(i int, r Reply, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil || r.Unanswered {
				t.Error(err)
			}
			answered, words = append(answered, i), append(words, r.Status())
		})
		require.Equal(t, []int{0, 2, 1}, answered)
		require.Equal(t, []string{"ok", "ok", "other"}, words)
		require.Equal(t, [][]string{
			{"EVALSHA", s.SHA, "1", "a", "a"},
			{"EVALSHA", other.SHA, "1", "b", "b"},
			{"EVALSHA", s.SHA, "1", "c", "c"},
			{"EVAL", other.Source(), "1", "b", "b"},
		}, server.commands)
	})
}

func TestACallOfManyFailsAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, server := embedded(t)
		require.NoError(t, server.Set("{b}", "text"))
		runner := NewRunner(client, Options{})
		calls := callsOf(simple(t), "{a}", "{b}", "{c}", "{d}")
		calls[3].Args = nil
		got := many(t.Context(), t, runner, calls)
		for _, i := range []int{0, 2} {
			require.NoError(t, got[i].err)
			require.Equal(t, calls[i].Keys[0], got[i].Str(1))
		}
		_, alone := runner.Run(t.Context(), calls[1].Script, Once, calls[1].Keys, calls[1].Args)
		require.ErrorContains(t, alone, `the key "{b}" (state) holds a string instead of a hash`)
		require.EqualError(t, got[1].err, alone.Error(), "as that of Run")
		require.ErrorIs(t, got[3].err, berth.ErrInvalidConfig)
		require.False(t, server.Exists("{d}"))
	})
}

func TestManyDoNotWaitForWordsAboutAnError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var answered []int
		server := newFakeServer(t, func(_ int, command []string) string {
			switch {
			case command[0] == "TYPE" && len(answered) != 1:
				t.Error("asked before the other one was answered")
				fallthrough
			case command[0] == "TYPE":
				return "+string\r\n"
			case command[3] == "a":
				return "-WRONGTYPE no\r\n"
			}
			return table("ok", "1")
		})
		NewRunner(server.client(t), exact()).RunMany(t.Context(), callsOf(simple(t), "a", "b"), func(i int, _ Reply, _ error) {
			answered = append(answered, i)
		})
		require.Equal(t, []int{1, 0}, answered)
	})
}

func TestManyAreGivenUpAfterCallTimeoutUnlessPatient(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := newFakeServer(t, answers(hang))
		runner := NewRunner(server.client(t), exact())
		for limit, ctx := range map[time.Duration]context.Context{3 * time.Second: t.Context(), 5 * time.Second: Patient(t.Context())} {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			begun := time.Now()
			for _, got := range many(ctx, t, runner, callsOf(simple(t), "a", "b")) {
				require.ErrorIs(t, got.err, berth.ErrUnavailable)
				require.True(t, MaybeRan(got.err))
			}
			require.Equal(t, limit, time.Since(begun))
		}
	})
}

func TestNothingOfManyIsSentAfterTheContextEnded(t *testing.T) {
	t.Parallel()
	client, server := embedded(t)
	cause := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for _, got := range many(ctx, t, NewRunner(client, Options{}), callsOf(simple(t), "{a}", "{b}")) {
		require.ErrorIs(t, got.err, context.Canceled)
		require.ErrorIs(t, got.err, cause)
		require.False(t, MaybeRan(got.err))
	}
	require.Empty(t, server.Keys())
}

// cluster returns a client that takes the embedded server for a Redis Cluster.
func cluster(t *testing.T) *pipes {
	t.Helper()
	t.Cleanup(func() { time.Sleep(time.Minute) }) // rueidis may look at the cluster once more
	m := miniredis.NewMiniRedis()
	t.Cleanup(m.Close)
	client := must(rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"embedded"}, DisableCache: true, ClientSetInfo: rueidis.DisableClientSetInfo,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return m.Dial() },
	})).in(t)
	t.Cleanup(client.Close)
	require.Equal(t, rueidis.ClientModeCluster, client.Mode())
	return &pipes{Client: client}
}

func TestManyGoToEachNodeByThemselves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := cluster(t)
		runner := NewRunner(p, Options{CallTimeout: time.Second})
		s := simple(t)
		// The slots of {a} to {e}: 15495, 3300, 7365, 11298, 15363. One node has those of a,
		// and e, the other that of c, and none the others.
		known := nodes{{0, 100, 0}, {4000, 8000, 1}, {15000, 16000, 0}}
		runner.owners.asked.Store(1)
		runner.owners.last.Store(&known)
		calls := callsOf(s, "{a}", "{b}", "{c}", "{d}", "{e}")
		keyless := script(Script{}, `redis.call("TIME") return {"ok"}`)
		calls = append(calls, Call{Script: keyless}, Call{Script: keyless})
		for _, got := range many(t.Context(), t, runner, calls) {
			require.NoError(t, got.err)
		}
		p.sizes, p.keys = nil, nil
		for _, got := range many(t.Context(), t, runner, calls[:5]) {
			require.NoError(t, got.err)
		}
		require.ElementsMatch(t, [][]string{{"{a}", "{e}"}, {"{c}"}, {"{b}", "{d}"}}, p.keys)

		p.stuck = "{e}"
		begun := time.Now()
		runner.RunMany(t.Context(), calls[:5], func(i int, _ Reply, err error) {
			if slow := i == 0 || i == 4; slow != (err != nil) || slow != (time.Since(begun) == time.Second) {
				t.Errorf("%d: %v after %v", i, err, time.Since(begun))
			}
		})
	})
}

func TestManyLearnWhichNodeHasWhat(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := cluster(t)
		runner := NewRunner(p, Options{})
		calls := callsOf(simple(t), "{a}", "{b}", "{c}", "{e}")
		many(t.Context(), t, runner, calls)
		p.keys = nil
		many(t.Context(), t, runner, calls)
		require.Len(t, p.keys, 1, "the one node has them all")
		require.Len(t, runner.owners.known(), 1)

		runner.owners.last.Store(nil)
		many(t.Context(), t, runner, calls)
		require.Nil(t, runner.owners.known(), "it is not asked each time")
		p.keys = nil
		time.Sleep(ownersAge + 1)
		many(t.Context(), t, runner, calls)
		require.ElementsMatch(t, [][]string{{"{a}", "{e}"}, {"{b}"}, {"{c}"}}, p.keys, "by runs of slots until it is known")
		require.NotNil(t, runner.owners.known())
	})
}

func TestOwnersReadTheSlots(t *testing.T) {
	t.Parallel()
	node := func(id string) string { return "*3\r\n$1\r\nh\r\n:1\r\n$1\r\n" + id + "\r\n" }
	run := func(first, last int, nodes ...string) string {
		return fmt.Sprintf("*%d\r\n:%d\r\n:%d\r\n", 2+len(nodes), first, last) + strings.Join(nodes, "")
	}
	for _, test := range []struct {
		name, answer string
		want         nodes
	}{
		{"in any order", "*3\r\n" + run(100, 199, node("b"), node("r")) + run(0, 49, node("a")) + run(300, 300, node("b")), nodes{{0, 49, 1}, {100, 199, 0}, {300, 300, 0}}},
		{"no slots", "*0\r\n", nodes{}},
		{"no node", "*1\r\n" + run(0, 1), nil},
		{"no id", "*1\r\n" + run(0, 1, "*2\r\n$1\r\nh\r\n:1\r\n"), nil},
		{"not a run", "*1\r\n:1\r\n", nil},
		{"not a list", ":1\r\n", nil},
		{"an error", "-NOPERM\r\n", nil},
	} {
		bubbleOf(t, test.name, func(t *testing.T) {
			r := NewRunner(newFakeServer(t, answers(test.answer)).client(t), Options{})
			r.owners.learn(t.Context(), r)
			require.Equal(t, test.want, r.owners.known())
		})
	}
	n := nodes{{0, 49, 1}, {100, 199, 0}, {300, 300, 0}}
	for slot, want := range map[uint16]int{0: 1, 49: 1, 50: noNode, 99: noNode, 100: 0, 199: 0, 200: noNode, 300: 0, 301: noNode, 16383: noNode} {
		require.Equal(t, want, n.of(slot), slot)
	}
	require.Equal(t, noNode, nodes{}.of(7))
	require.Equal(t, 0, nodes(nil).of(1023))
	require.Equal(t, 15, nodes(nil).of(16383))
}
