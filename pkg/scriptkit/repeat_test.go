package scriptkit

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

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
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. script: 12b6, on @user_script:1.",
		"ERR Script killed by user with SCRIPT KILL... script: 12b6, on @user_script:1.",
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

func TestPatientWaitsForALateAnswerAndSendsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
