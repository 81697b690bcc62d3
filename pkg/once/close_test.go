package once_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/once"
)

// closing is a Close that ends a job of a process.
type closing func(ctx context.Context, n *process, cfg once.Config) error

// closes runs a test with the Close of the job, and with that of the node.
func closes(t *testing.T, test func(t *testing.T, w *world, end closing)) {
	t.Helper()
	for row, end := range map[string]closing{
		"the job":  func(ctx context.Context, n *process, cfg once.Config) error { return n.job(cfg).Close(ctx) },
		"the node": func(ctx context.Context, n *process, _ once.Config) error { return n.Close(ctx) },
	} {
		inWorldOf(t, row, func(t *testing.T, w *world) { test(t, w, end) })
	}
}

func TestCloseWaitsForRunsAndTellsThemToEnd(t *testing.T) {
	closes(t, func(t *testing.T, w *world, end closing) {
		a, b := w.node(), w.node()
		run := a.start(t.Context(), hourly, func(ctx context.Context, _ *once.Run) error {
			<-ctx.Done()
			time.Sleep(time.Second) // it cleans up
			return context.Cause(ctx)
		})
		wait := b.start(t.Context(), waiting(hourly), takes(ms, nil))
		for range 2 {
			require.NoError(t, end(t.Context(), a, hourly))
			require.Equal(t, time.Second, w.Now())
		}
		r := run.Granted(time.Second)
		require.ErrorIs(t, r.err, berth.ErrClosed)
		require.Equal(t, once.Stopped, r.Outcome)
		next := wait.Granted(time.Second + ms)
		require.NoError(t, next.err)
		require.Equal(t, 1, next.Attempt)
		_, _ = a.fails(hourly, berth.ErrClosed)
		require.ErrorIs(t, a.job(hourly).Run(t.Context(), never(t)), berth.ErrClosed)
	})
}

func TestCloseEndsAllWaits(t *testing.T) {
	for wait, begin := range map[string]func(other *process){
		"in line": func(other *process) { other.start(other.w.T.Context(), hourly, takes(time.Minute, nil)) },
		"for the end of a rest": func(other *process) {
			other.ran(once.Config{Every: hour, RetryAfter: 10 * time.Minute}, errMine)
		},
		"for the next period": func(other *process) { other.ran(hourly, nil) },
	} {
		t.Run(wait, func(t *testing.T) {
			closes(t, func(t *testing.T, w *world, end closing) {
				n := w.node()
				begin(w.node())
				call := testkit.Queue(context.Background(), w.World, func(ctx context.Context) (_ struct{}, err error) {
					if wait == "for the next period" {
						return struct{}{}, n.job(waiting(hourly)).Run(ctx, never(t))
					}
					_, err = n.job(waiting(hourly)).Do(ctx, never(t))
					return struct{}{}, err
				})
				require.True(t, call.Pending())
				at := w.Now()
				require.NoError(t, end(t.Context(), n, waiting(hourly)))
				<-call.Done
				require.ErrorIs(t, call.Err, berth.ErrClosed)
				require.Equal(t, at, w.Now())
			})
		})
	}
}

// Another Job goes on, and what runs keeps its lock.
func TestCloseOfAJobThatMayNotWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		run := a.start(t.Context(), hourly, takes(time.Minute, nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, a.job(hourly).Close(ctx), context.DeadlineExceeded)
		seen := b.finds(hourly, once.Running)
		require.Equal(t, []any{a.ID(), once.Begun}, []any{seen.Node, seen.Outcome}, "who runs")
		_, err := a.named("another", hourly).Do(t.Context(), takes(ms, nil))
		require.NoError(t, err)
		require.NoError(t, run.Granted(time.Minute).err)
		require.NoError(t, a.job(hourly).Close(ctx), "nothing runs any more")
		b.finds(hourly, once.Done)
	})
}

// A Job may be made for one call, as by a program that has many names.
func TestAJobThatIsUsedAndDroppedLeavesNothingBehind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, jobs := w.node(), make([]weak.Pointer[once.Job], 1000)
		for i := range jobs {
			job := once.New(n.Node, digest, once.Config{Every: 20 * ms})
			_, err := job.Do(t.Context(), takes(0, nil))
			require.NoError(t, err)
			jobs[i] = weak.Make(job)
			w.Until(time.Duration(i+1) * 20 * ms)
		}
		runtime.GC()
		for _, job := range jobs {
			require.Nil(t, job.Value())
		}
	})
}

// Each of two jobs takes a second to end. A second Close, as by a second signal, waits for them too.
func TestANodeThatClosesTellsAllJobsAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		var runs []*testkit.Wait[once.Result]
		for _, name := range []string{"first", "second"} {
			runs = append(runs, testkit.Queue(context.Background(), w.World, func(ctx context.Context) (once.Result, error) {
				return n.named(name, hourly).Do(ctx, func(ctx context.Context, run *once.Run) error {
					<-ctx.Done()
					time.Sleep(time.Second)
					return run.Context().Err()
				})
			}))
		}
		closing := testkit.Queue(context.Background(), w.World, func(ctx context.Context) (struct{}, error) { return struct{}{}, n.Close(ctx) })
		require.NoError(t, n.Close(t.Context()))
		require.Equal(t, time.Second, w.Now())
		<-closing.Done
		for _, run := range runs {
			run.Granted(time.Second) // its lock was held
		}
	})
}

// Neither Run nor Do waits for a server that does not answer once its job, or the node, is closed.
func TestCloseEndsCallsOfAServerThatStandsStill(t *testing.T) {
	closes(t, func(t *testing.T, w *world, end closing) {
		n, again := w.node(), once.Config{Every: hour, Attempts: 4}
		n.ran(hourly, nil)
		n.Stall()
		ended := make(chan error, 2)
		go func() { ended <- n.job(again).Run(context.Background(), never(t)) }()
		go func() { ended <- testkit.Second(n.job(again).Do(context.Background(), never(t))) }()
		synctest.Wait()
		began := w.Now()
		require.NoError(t, end(context.Background(), n, again))
		require.ErrorIs(t, <-ended, berth.ErrClosed)
		require.ErrorIs(t, <-ended, berth.ErrClosed)
		require.LessOrEqual(t, w.Now()-began, ms)
		n.Flow()
	})
}
