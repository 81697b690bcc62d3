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

func TestAnAnswerCountsThoughTheContextHasEnded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ answer, want string }{
		"a reply":                {table("ok", "1"), ""},
		"a final error":          {"-OOM full\r\n", "the server is full"},
		"one that did not run":   {"-LOADING wait\r\n", "context canceled; the last attempt: LOADING wait"},
		"none, the call may run": {drop, "context canceled; the last attempt: EOF (it may have run)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
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
		})
	}
}

func TestNoAttemptStartsAtTheContextsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
