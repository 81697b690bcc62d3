package scriptkit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func TestBoundedStopsAfterItsAttempts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := newFakeServer(t, answers("-TRYAGAIN later\r\n"))
		opts := exact()
		opts.Retry.Attempts = 5
		var retries []int
		opts.OnRetry = func(_ context.Context, script string, attempt int, err error) {
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
	bubble(t, func(t *testing.T) {
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
	bubble(t, func(t *testing.T) {
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

func TestPatientWaitsForALateAnswerAndSendsOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		late := func(_ int, _ []string) string {
			time.Sleep(5 * time.Second) // CallTimeout is 3 s
			return table("ok", "1")
		}
		server := newFakeServer(t, late)
		r, err := run(Patient(t.Context()), NewRunner(server.client(t), exact()), simple(t), Once)
		require.NoError(t, err)
		require.Equal(t, "ok", r.Status())
		require.Len(t, server.seen(), 1)

		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		_, err = run(Patient(ctx), NewRunner(server.client(t), exact()), simple(t), Once)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, MaybeRan(err))
		require.Len(t, server.seen(), 2)
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
		bubbleOf(t, name, func(t *testing.T) {
			server := newFakeServer(t, answers(tt.first, table("ok", "1")))
			client := server.client(t)
			begun := time.Now()
			r, err := run(context.Background(), NewRunner(client, exact()), simple(t), Bounded)
			require.NoError(t, err)
			require.True(t, r.Unanswered)
			require.Equal(t, tt.took, time.Since(begun))
		})
	}
}

func TestDoubtOutlastsLaterAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := newFakeServer(t, answers(drop, "-LOADING\r\n", "-OOM full\r\n"))
		_, err := run(t.Context(), NewRunner(server.client(t), exact()), simple(t), Bounded)
		require.ErrorContains(t, err, "the server is full")
		require.True(t, MaybeRan(err))
		require.False(t, Repeatable(err))
	})
}

func TestDoubtComesWithTheSourceToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const unknown = "-NOSCRIPT No matching script.\r\n"
		server := newFakeServer(t, answers(table("ok", "1"), unknown, drop, unknown, table("ok", "1")))
		runner, s := NewRunner(server.client(t), exact()), simple(t)
		r, err := run(t.Context(), runner, s, Bounded)
		require.NoError(t, err)
		require.False(t, r.Unanswered)
		r, err = run(t.Context(), runner, s, Bounded)
		require.NoError(t, err)
		require.True(t, r.Unanswered)
		require.Equal(t, []string{"EVAL", "EVALSHA", "EVAL", "EVALSHA", "EVAL"}, server.seen())
	})
}

func TestManyCallsToASilentServerFailInTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := newFakeServer(t, answers(hang))
		runner := NewRunner(server.client(t), exact())
		begun := time.Now()
		errs := make(chan error, 50)
		script := simple(t)
		for range 50 {
			go func() {
				_, err := run(context.Background(), runner, script, Once)
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

func TestNoAttemptStartsAfterWithin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := newFakeServer(t, answers("-LOADING\r\n"))
		opts := exact()
		opts.OnRetry = func(context.Context, string, int, error) { time.Sleep(10 * time.Second) }
		_, err := run(t.Context(), NewRunner(server.client(t), opts), simple(t), Bounded)
		require.ErrorContains(t, err, "LOADING")
		require.Len(t, server.seen(), 1)
	})
}

// A master that is killed is replaced within some seconds; a call that was made just
// then has its answer from the new one.
func TestTheDefaultOutlastsAFailover(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const failover = 6 * time.Second
		begin := time.Now()
		server := newFakeServer(t, func(int, []string) string {
			if time.Since(begin) < failover {
				return "-CLUSTERDOWN The cluster is down\r\n"
			}
			return "*1\r\n$2\r\nok\r\n"
		})
		_, err := run(t.Context(), NewRunner(server.client(t), Options{}), simple(t), Bounded)
		require.NoError(t, err)
		require.Less(t, time.Since(begin), failover+2*time.Second)
	})
}

func TestUntilDoneRepeatsUntilTheContextEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
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
	bubble(t, func(t *testing.T) {
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
		bubbleOf(t, name, func(t *testing.T) {
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
	}
}

func TestADeadlineEndsAnAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
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

func TestAnAnswerCountsThoughTheContextHasEnded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ answer, want string }{
		"a reply":                {table("ok", "1"), ""},
		"a final error":          {"-OOM full\r\n", "the server is full"},
		"one that did not run":   {"-LOADING wait\r\n", "context canceled; the last attempt: LOADING wait"},
		"none, the call may run": {drop, "context canceled; the last attempt: EOF (it may have run)"},
	} {
		bubbleOf(t, name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			server := newFakeServer(t, func(int, []string) string {
				cancel()
				return tt.answer
			})
			opts := exact()
			opts.OnRetry = func(context.Context, string, int, error) { t.Error("nothing will be repeated") }
			_, err := run(ctx, NewRunner(server.client(t), opts), simple(t), UntilDone)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, tt.answer != "-OOM full\r\n", errors.Is(err, context.Canceled))
		})
	}
}

func TestNoAttemptStartsAtTheContextsDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := newFakeServer(t, answers("-LOADING\r\n"))
		runner := NewRunner(server.client(t), exact())
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond) // as long as the pause
			_, err := run(ctx, runner, simple(t), UntilDone)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, 1, e.Attempts)
			require.False(t, e.MaybeRan)
			cancel()
		}
		require.Len(t, server.seen(), 50)
	})
}

// closingClient answers ErrClosing while it is told to.
type closingClient struct {
	rueidis.Client
	closing func() bool
}

func (c *closingClient) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	if c.closing() {
		return rueidis.NewErrorResult(rueidis.ErrClosing)
	}
	return c.Client.Do(ctx, command)
}

func TestAConnectionThatAFailoverReplacedIsNoClosedClient(t *testing.T) {
	bubble(t, func(t *testing.T) {
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

func TestAnyOtherAnswerSaysThatTheClientIsNotClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := newFakeServer(t, answers("-OOM full\r\n", table("ok", "1")))
		closing := true
		runner := NewRunner(&closingClient{Client: server.client(t), closing: func() bool { return closing }}, exact())
		ask := func() error {
			_, err := run(t.Context(), runner, simple(t), Once)
			return err
		}
		require.True(t, Repeatable(ask()))
		for range 2 { // after an error that the server answered, and after a reply
			time.Sleep(time.Hour)
			closing = false
			require.NotErrorIs(t, ask(), rueidis.ErrClosing)
			closing = true
			require.True(t, Repeatable(ask()), "a new streak")
		}
		time.Sleep(2*time.Second - 1)
		require.True(t, Repeatable(ask()))
		time.Sleep(time.Nanosecond)
		require.False(t, Repeatable(ask()))
	})
}

func TestAClosedClientIsFinal(t *testing.T) {
	bubble(t, func(t *testing.T) {
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
