package scriptkit

import (
	"context"
	"errors"
	"testing"
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

// A call ends with its attempts, with the time that they have, or with its context, and says whether it may have run.
func TestHowACallOfAServerThatDoesNotServeItEnds(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	type end = func(context.Context) (context.Context, context.CancelFunc)
	open := context.WithCancel
	limit := func(d time.Duration) end {
		return func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, d, errors.New("too slow"))
		}
	}
	leaves := func(c context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(c)
		time.AfterFunc(7*ms, cancel)
		return ctx, cancel
	}
	for name, tt := range map[string]struct {
		answers      []string
		mode         Mode
		limit        end
		change       func(*Options)
		says         string
		took         time.Duration
		sent         int
		doubt, again bool
		is           error
	}{
		// Three attempts of 3 s, and what was left for the fourth.
		"within": {
			[]string{hang},
			Bounded, open, nil, "no answer in time (4 attempts, one may have run)",
			10 * time.Second, 4, true, true, nil,
		},
		"no pause goes beyond within": {[]string{"-LOADING\r\n"}, Bounded, open, func(o *Options) {
			o.Retry.Attempts, o.Retry.Base, o.Retry.Within = 100, time.Second, 2500*ms
		}, "(3 attempts)", 2 * time.Second, 3, false, true, nil},
		"no attempt starts after within": {[]string{"-LOADING\r\n"}, Bounded, open, func(o *Options) {
			o.OnRetry = func(context.Context, string, int, error) { time.Sleep(10 * time.Second) }
		}, "LOADING", 10*time.Second + 20*ms, 1, false, true, nil},
		// A command marked retryable would be repeated by rueidis.
		"once":           {[]string{"-LOADING\r\n"}, Once, open, nil, "LOADING", 0, 1, false, true, nil},
		"once, in doubt": {[]string{drop}, Once, open, nil, "EOF", 0, 1, true, true, nil},
		"doubt outlasts later answers": {
			[]string{drop, "-LOADING\r\n", "-OOM full\r\n"},
			Bounded, open, nil, "the server is full",
			60 * ms, 3, true, false, nil,
		},
		"until the context ends": {
			[]string{"-TRYAGAIN later\r\n"},
			UntilDone, limit(20 * time.Second), nil,
			"context deadline exceeded: too slow; the last attempt: TRYAGAIN later (25 attempts)",
			20 * time.Second, 25, false, true, context.DeadlineExceeded,
		},
		"the context ends a pause": {[]string{"-LOADING\r\n"}, UntilDone, leaves, func(o *Options) {
			o.Retry.Base, o.Retry.Cap = time.Hour, time.Hour
		}, "LOADING", 7 * ms, 1, false, true, context.Canceled},
		"a deadline ends an attempt": {
			[]string{hang},
			Bounded, limit(time.Second), nil, "; the last attempt: no answer in time (it may have run)",
			time.Second, 1, true, true, context.DeadlineExceeded,
		},
		// rueidis reads the answer on the caller's goroutine where nobody else uses the connection.
		"the caller leaves an attempt": {
			[]string{hang},
			UntilDone, leaves, nil, "; the last attempt: no answer in time (it may have run)",
			3 * time.Second, 1, true, true, context.Canceled,
		},
	} {
		bubbleOf(t, name, func(t *testing.T) {
			server, opts := newFakeServer(t, answers(tt.answers...)), exact()
			if tt.change != nil {
				tt.change(&opts)
			}
			client, script := server.client(t), simple(t)
			begun := time.Now()
			ctx, cancel := tt.limit(t.Context())
			defer cancel()
			_, err := run(ctx, NewRunner(client, opts), script, tt.mode)
			require.Equal(t, tt.took, time.Since(begun))
			require.ErrorContains(t, err, tt.says)
			require.Len(t, server.seen(), tt.sent)
			require.Equal(t, []bool{tt.doubt, tt.again}, []bool{MaybeRan(err), Repeatable(err)})
			for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
				require.Equal(t, errors.Is(tt.is, end), errors.Is(err, end), "the caller's context: %v", end)
			}
			if tt.sent == 25 { // 20, 40 ... 640 ms make 1.26 s, then one a second
				require.Equal(t, []time.Duration{1260 * ms, 2260 * ms}, server.times[6:8])
				require.Equal(t, 19260*ms, server.times[24])
				require.ErrorAs(t, err, new(*rueidis.RedisError))
			}
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
		r := must(run(Patient(t.Context()), NewRunner(server.client(t), exact()), simple(t), Once)).in(t)
		require.Equal(t, "ok", r.Status())
		require.Len(t, server.seen(), 1)

		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		_, err := run(Patient(ctx), NewRunner(server.client(t), exact()), simple(t), Once)
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
			r := must(run(context.Background(), NewRunner(client, exact()), simple(t), Bounded)).in(t)
			require.True(t, r.Unanswered)
			require.Equal(t, tt.took, time.Since(begun))
		})
	}
}

func TestDoubtComesWithTheSourceToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const unknown = "-NOSCRIPT No matching script.\r\n"
		server := newFakeServer(t, answers(table("ok", "1"), unknown, drop, unknown, table("ok", "1")))
		runner, s := NewRunner(server.client(t), exact()), simple(t)
		r := must(run(t.Context(), runner, s, Bounded)).in(t)
		require.False(t, r.Unanswered)
		r = must(run(t.Context(), runner, s, Bounded)).in(t)
		require.True(t, r.Unanswered)
		require.Equal(t, []string{"EVAL", "EVALSHA", "EVAL", "EVALSHA", "EVAL"}, server.seen())
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
		r := must(run(t.Context(), runner, simple(t), UntilDone)).in(t)
		require.True(t, r.Unanswered)

		// The streak is over: the next one begins anew.
		time.Sleep(time.Hour)
		begun = time.Now()
		must(run(t.Context(), runner, simple(t), UntilDone)).in(t)
	})
}

func TestAnyOtherAnswerSaysThatTheClientIsNotClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := newFakeServer(t, answers("-OOM full\r\n", table("ok", "1")))
		closing := true
		runner := NewRunner(&closingClient{Client: server.client(t), closing: func() bool { return closing }}, exact())
		ask := func() error { return second(run(t.Context(), runner, simple(t), Once)) }
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
