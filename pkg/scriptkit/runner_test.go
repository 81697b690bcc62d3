package scriptkit

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

// exact are options without chance.
func exact() Options { return Options{Retry: berth.Retry{Jitter: -1}} }

// simple takes one key and one argument and answers ok.
func simple(t testing.TB) *Script {
	return script(t, "KEYS[1] state (HASH)\nARGV[1] value\nRETURNS {\"ok\", value}",
		`redis.call("HSET", KEYS[1], "f", ARGV[1]) return {"ok", redis.call("HGET", KEYS[1], "f")}`)
}

// run runs simple's script with a key and an argument.
func run(ctx context.Context, r *Runner, s *Script, mode Mode) (Reply, error) {
	return r.Run(ctx, s, mode, []string{"{gpu}:state"}, []string{"secret"})
}

func TestRunSendsTheSourceOnlyOnceToAServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := simple(t)
		known := false
		server := newFakeServer(t, func(_ int, command []string) string {
			known = known || command[0] == "EVAL" && command[1] == s.Source
			if !known {
				return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
			}
			return table("ok", "1")
		})
		runner := NewRunner(server.client(t), exact())
		for range 2 {
			r, err := run(t.Context(), runner, s, Once)
			require.NoError(t, err)
			require.False(t, r.Unanswered)
		}
		require.Equal(t, [][]string{
			{"EVALSHA", s.SHA, "1", "{gpu}:state", "secret"},
			{"EVAL", s.Source, "1", "{gpu}:state", "secret"},
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
	fixed := script(t, "KEYS[1] a (SET)  KEYS[2] b (SET)\nARGV[1] x\nRETURNS {\"ok\"}", `f(KEYS, ARGV) return {"ok"}`)
	group := script(t, "ARGV[1] x\nARGV[2...] x2: p, q\nRETURNS {\"ok\"}", `f(ARGV) return {"ok"}`)
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

func TestAnswersThatMeanDidNotRunAreRepeatedWithoutDoubt(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		"TRYAGAIN Multiple keys request during rehashing of slot",
		"CLUSTERDOWN Hash slot not served",
		"LOADING Redis is loading the dataset in memory",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		"READONLY You can't write against a read only replica. script: 12b6, on @user_script:1.",
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
		"NOREPLICAS Not enough good replicas to write. script: 12b6, on @user_script:1.",
		"REDIRECT 10.0.0.1:6379",
		"ERR max number of clients reached",
	} {
		t.Run(strings.Fields(answer)[0], func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := newFakeServer(t, answers("-"+answer+"\r\n", "-"+answer+"\r\n", table("ok", "1")))
				r, err := run(t.Context(), NewRunner(server.client(t), exact()), simple(t), Bounded)
				require.NoError(t, err)
				require.Equal(t, "ok", r.Status())
				require.False(t, r.Unanswered)
				require.Equal(t, []time.Duration{0, 20 * time.Millisecond, 60 * time.Millisecond}, server.times)
			})
		})
	}
}

func TestOtherAnswersAreFinal(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		"ERR user_script:1: boom script: 12b6, on @user_script:1.",
		"OOM command not allowed when used memory > 'maxmemory'.",
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist on disk.",
		"BUSYGROUP no such answer to a script",
		"MOVED 866 10.0.0.1:6379",
		"NOAUTH Authentication required.",
	} {
		t.Run(strings.Fields(answer)[0], func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := newFakeServer(t, answers("-"+answer+"\r\n"))
				_, err := run(t.Context(), NewRunner(server.client(t), exact()), simple(t), UntilDone)
				var e *Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, 1, e.Attempts)
				require.False(t, e.MaybeRan)
				require.False(t, e.Repeatable)
				var original *rueidis.RedisError
				require.ErrorAs(t, err, &original)
				require.Equal(t, strings.TrimPrefix(answer, "ERR "), original.Error())
				require.Len(t, server.seen(), 1)
			})
		})
	}
}

func TestBoundedStopsAfterItsAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t, answers("-TRYAGAIN later\r\n"))
		opts := exact()
		var retries []int
		opts.OnRetry = func(script string, attempt int, err error) {
			require.Equal(t, "s", script)
			require.EqualError(t, err, "TRYAGAIN later")
			retries = append(retries, attempt)
		}
		_, err := run(t.Context(), NewRunner(server.client(t), opts), simple(t), Bounded)
		require.EqualError(t, err, `berth: script s on "{gpu}:state": TRYAGAIN later (5 attempts)`)
		require.False(t, MaybeRan(err))
		require.True(t, Repeatable(err))
		require.Equal(t, []int{1, 2, 3, 4}, retries)
		const ms = time.Millisecond
		require.Equal(t, []time.Duration{0, 20 * ms, 60 * ms, 140 * ms, 300 * ms}, server.times)
	})
}

func TestBoundedStopsWithin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t, answers(hang))
		client := server.client(t)
		begun := time.Now()
		_, err := run(t.Context(), NewRunner(client, exact()), simple(t), Bounded)
		require.EqualError(t, err, `berth: script s on "{gpu}:state": no answer in time (4 attempts, one may have run)`)
		// Three attempts of 3 s, and what was left for the fourth.
		require.Equal(t, 10*time.Second, time.Since(begun))
		require.True(t, MaybeRan(err))
		require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's context has not ended")
	})
}

func TestBoundedDoesNotPauseBeyondWithin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t, answers("-LOADING\r\n"))
		opts := exact()
		opts.Retry.Attempts, opts.Retry.Base, opts.Retry.Within = 100, time.Second, 2500*time.Millisecond
		begun := time.Now()
		_, err := run(t.Context(), NewRunner(server.client(t), opts), simple(t), Bounded)
		require.ErrorContains(t, err, "(3 attempts)")
		require.Equal(t, 2*time.Second, time.Since(begun))
	})
}

func TestOnceSendsOnce(t *testing.T) {
	t.Parallel()
	for answer, maybeRan := range map[string]bool{"-LOADING\r\n": false, drop: true} {
		synctest.Test(t, func(t *testing.T) {
			server := newFakeServer(t, answers(answer))
			_, err := run(t.Context(), NewRunner(server.client(t), exact()), simple(t), Once)
			require.Error(t, err)
			require.Equal(t, maybeRan, MaybeRan(err))
			require.True(t, Repeatable(err))
			// A command marked retryable would be repeated by rueidis.
			require.Len(t, server.seen(), 1)
		})
	}
}

func TestUntilDoneRepeatsUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t, answers("-TRYAGAIN later\r\n"))
		client := server.client(t)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		begun := time.Now()
		_, err := run(ctx, NewRunner(client, exact()), simple(t), UntilDone)
		require.Equal(t, 20*time.Second, time.Since(begun))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "context deadline exceeded; the last attempt: TRYAGAIN later (25 attempts)")
		var answer *rueidis.RedisError
		require.ErrorAs(t, err, &answer)
		require.False(t, MaybeRan(err))
		// 20, 40 ... 640 ms make 1.26 s, then one a second.
		require.Equal(t, 1260*time.Millisecond, server.times[6])
		require.Equal(t, 2260*time.Millisecond, server.times[7])
		require.Equal(t, 19260*time.Millisecond, server.times[24])
	})
}

func TestAnAttemptWithoutAnswerLeavesDoubt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first string
		took  time.Duration
	}{
		"a connection that breaks": {drop, 20 * time.Millisecond},
		"a server that is silent":  {hang, 3020 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := newFakeServer(t, answers(tt.first, table("ok", "1")))
				client := server.client(t)
				begun := time.Now()
				r, err := run(context.Background(), NewRunner(client, exact()), simple(t), Bounded)
				require.NoError(t, err)
				require.True(t, r.Unanswered)
				require.Equal(t, tt.took, time.Since(begun))
			})
		})
	}
}

func TestDoubtOutlastsLaterAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t, answers(drop, "-LOADING\r\n", "-OOM full\r\n"))
		_, err := run(t.Context(), NewRunner(server.client(t), exact()), simple(t), Bounded)
		require.ErrorContains(t, err, "the server is full")
		require.True(t, MaybeRan(err))
		require.False(t, Repeatable(err))
	})
}

func TestDoubtComesWithTheSourceToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const unknown = "-NOSCRIPT No matching script.\r\n"
		server := newFakeServer(t, answers(unknown, drop, unknown, table("ok", "1")))
		r, err := run(t.Context(), NewRunner(server.client(t), exact()), simple(t), Bounded)
		require.NoError(t, err)
		require.True(t, r.Unanswered)
		require.Equal(t, []string{"EVALSHA", "EVAL", "EVALSHA", "EVAL"}, server.seen())
	})
}

func TestManyCallsToASilentServerFailInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t, answers(hang))
		runner := NewRunner(server.client(t), exact())
		begun := time.Now()
		errs := make(chan error, 50)
		for range 50 {
			go func() {
				_, err := run(context.Background(), runner, simple(t), Once)
				errs <- err
			}()
		}
		for range 50 {
			err := <-errs
			require.ErrorContains(t, err, "no answer in time")
			require.True(t, MaybeRan(err))
		}
		require.Equal(t, 3*time.Second, time.Since(begun))
	})
}

func TestNothingIsSentAfterTheContextEnded(t *testing.T) {
	t.Parallel()
	cause := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := run(ctx, NewRunner(nil, Options{}), simple(t), UntilDone)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, cause)
	require.EqualError(t, err, `berth: script s on "{gpu}:state": context canceled: the user left`)
	require.False(t, MaybeRan(err))
}

func TestTheContextEndsAPauseAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t, answers("-LOADING\r\n"))
		client := server.client(t)
		ctx, cancel := context.WithCancel(t.Context())
		opts := exact()
		opts.Retry.Base, opts.Retry.Cap = time.Hour, time.Hour
		begun := time.Now()
		time.AfterFunc(7*time.Millisecond, cancel)
		_, err := run(ctx, NewRunner(client, opts), simple(t), UntilDone)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 7*time.Millisecond, time.Since(begun))
		require.False(t, MaybeRan(err))
	})
}

func TestTheContextEndsDuringAnAttempt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pipelined bool
		took      time.Duration
	}{
		"on a connection that others use": {true, time.Second},
		// rueidis reads the answer on the caller's goroutine then.
		"alone on its connection": {false, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := newFakeServer(t, func(_ int, command []string) string {
					if command[0] == "ECHO" {
						return table("x")
					}
					return hang
				})
				client := server.client(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.pipelined { // a context without a deadline makes it so
					require.NoError(t, client.Do(ctx, client.B().Echo().Message("x").Build()).Error())
				}
				begun := time.Now()
				time.AfterFunc(time.Second, cancel)
				_, err := run(ctx, NewRunner(client, exact()), simple(t), UntilDone)
				require.ErrorIs(t, err, context.Canceled)
				require.True(t, MaybeRan(err))
				require.Equal(t, tt.took, time.Since(begun))
			})
		})
	}
}

func TestADeadlineEndsAnAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t, answers(hang))
		client := server.client(t)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("too slow"))
		defer cancel()
		begun := time.Now()
		_, err := run(ctx, NewRunner(client, exact()), simple(t), Bounded)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, MaybeRan(err))
		require.Equal(t, time.Second, time.Since(begun))
		require.ErrorContains(t, err, "; the last attempt: no answer in time (it may have run)")
	})
}

// closingClient answers ErrClosing while it is told to.
type closingClient struct {
	rueidis.Client
	closing func() bool
	asked   atomic.Int64
}

func (c *closingClient) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	c.asked.Add(1)
	if c.closing() {
		return rueidis.NewErrorResult(rueidis.ErrClosing)
	}
	return c.Client.Do(ctx, command)
}

func TestAConnectionThatAFailoverReplacedIsNoClosedClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t, answers(table("ok", "1")))
		inner, begun := server.client(t), time.Now()
		client := &closingClient{Client: inner, closing: func() bool { return time.Since(begun) < 1500*time.Millisecond }}
		runner := NewRunner(client, exact())
		time.Sleep(time.Millisecond)
		r, err := run(t.Context(), runner, simple(t), UntilDone)
		require.NoError(t, err)
		require.True(t, r.Unanswered)

		// The streak is over: the next one begins anew.
		time.Sleep(time.Hour)
		begun = time.Now()
		_, err = run(t.Context(), runner, simple(t), UntilDone)
		require.NoError(t, err)
	})
}

func TestAClosedClientIsFinal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeServer(t, answers(table("ok", "1"))).client(t)
		runner := NewRunner(client, exact())
		client.Close()
		begun := time.Now()
		_, err := run(context.Background(), runner, simple(t), UntilDone)
		require.ErrorIs(t, err, rueidis.ErrClosing)
		require.False(t, Repeatable(err))
		require.Less(t, time.Since(begun), 4*time.Second)

		// Who sends attempts one by one learns it too.
		_, err = run(context.Background(), runner, simple(t), Once)
		require.ErrorIs(t, err, rueidis.ErrClosing)
		require.False(t, Repeatable(err))
	})
}
