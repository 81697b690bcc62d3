package allocator

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

func TestOneNodeAtATimeAsksTheSourceAndAnotherGoesOnWhenItIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTurns()
		var mu sync.Mutex
		var asks []string // guarded by mu
		asked := func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(asks)
		}
		var all []*refreshes
		for n := range 3 {
			all = append(all, s.refreshes(t, func(context.Context) ([]string, error) {
				mu.Lock()
				defer mu.Unlock()
				asks = append(asks, fmt.Sprintf("node %d at %v", n, time.Since(s.began)))
				return []string{"a", "b"}, nil
			}, func(cfg *refreshConfig) {
				cfg.jitter = func(time.Duration) time.Duration { return time.Duration(n) * time.Millisecond }
			}))
			synctest.Wait()
		}
		after(2*every - time.Second)
		require.Equal(t, []string{"node 0 at 0s", "node 0 at 30s"}, asked())
		require.Equal(t, []string{"refreshed 2", "refreshed 2"}, all[0].told())
		require.Empty(t, all[1].told())
		require.NoError(t, all[0].stop(t.Context()))
		after(2 * time.Second)
		require.Equal(t, []string{"node 0 at 0s", "node 0 at 30s", "node 1 at 1m0.001s"}, asked())
		require.Equal(t, [][]string{{"a", "b"}, {"a", "b"}, {"a", "b"}}, s.seen().replaces)
	})
}

func TestWhatIsWrongWithAnAnswerIsReportedAndChangesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		source func(context.Context) ([]string, error)
		says   string
	}{
		{"an error", func(context.Context) ([]string, error) { return []string{"a"}, errMyOwn }, "my own reason"},
		{"a panic", func(context.Context) ([]string, error) { panic("mine") }, "berth: Source panicked: mine"},
		{"nothing", returns(), "berth: Source returned no resources; AllowEmpty lets that empty the pool"},
		{"an empty key", returns("a", ""), "berth: element 1 of what Source returned: berth: invalid resource: a key must not be empty"},
		{
			"a long key", returns(strings.Repeat("k", 1025)),
			`berth: element 0 of what Source returned: berth: invalid resource: "` + strings.Repeat("k", 40) + `"... has 1025 bytes, more than 1024`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newTurns()
				var calls atomic.Int32
				r := s.refreshes(t, func(ctx context.Context) ([]string, error) {
					if calls.Add(1) == 2 {
						return []string{"good"}, nil
					}
					return c.source(ctx)
				})
				synctest.Wait()
				require.Equal(t, []string{"refresh_failed " + c.says}, r.told())
				require.Empty(t, s.seen().replaces)
				after(firstRetry - time.Millisecond)
				require.EqualValues(t, 1, calls.Load())
				after(time.Millisecond)
				require.Equal(t, [][]string{{"good"}}, s.seen().replaces)
				require.Equal(t, "refreshed 1", r.told()[1])
			})
		})
	}
}

func TestASourceThatFailsIsAskedAgainSoonAndThenLessAndLessOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTurns()
		began := time.Now()
		var asked []time.Duration
		s.refreshes(t, func(context.Context) ([]string, error) {
			asked = append(asked, time.Since(began))
			if len(asked) == 8 {
				return []string{"good"}, nil
			}
			return nil, errMyOwn
		})
		after(3 * time.Minute)
		// Once it has answered, as often as ever, and after that the first retry is soon again.
		require.Equal(t, seconds(0, 1, 3, 7, 15, 31, 61, 91, 121, 122), asked[:10])
	})
}

func TestAnEmptyAnswerEmptiesThePoolWhereThatIsAllowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTurns()
		r := s.refreshes(t, returns(), func(cfg *refreshConfig) { cfg.allowEmpty = true })
		synctest.Wait()
		require.Equal(t, [][]string{{}}, s.seen().replaces)
		require.Equal(t, []string{"refreshed 0"}, r.told())
	})
}

func TestRepeatsInAnAnswerAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTurns()
		r := s.refreshes(t, returns("b", "a", "b", "\xff"))
		synctest.Wait()
		require.Equal(t, [][]string{{"b", "a", "\xff"}}, s.seen().replaces)
		require.Equal(t, []string{"refreshed 3"}, r.told())
	})
}

func TestTheTurnIsKeptWhileTheSourceAndTheReplaceTakeLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTurns()
		s.slow = 35 * time.Second
		s.fail(func(call string) error {
			if call == "stay" && len(s.stays) == 2 {
				return errMyOwn // made good by the next
			}
			return nil
		})
		var calls atomic.Int32
		source := func(context.Context) ([]string, error) {
			calls.Add(1)
			time.Sleep(65 * time.Second)
			return []string{"a"}, nil
		}
		first := s.refreshes(t, source)
		synctest.Wait()
		s.refreshes(t, source)
		after(100*time.Second + time.Millisecond)
		require.EqualValues(t, 1, calls.Load())
		require.Equal(t, []string{"refreshed 1"}, first.told())
		require.Equal(t, seconds(10, 20, 30, 40, 50, 60, 70, 80, 90, 100)[:9], s.seen().stays[:9])
		count := len(s.seen().stays)
		after(20 * time.Second)
		require.Len(t, s.seen().stays, count, "it ends with the Replace")
		after(11 * time.Second)
		require.EqualValues(t, 2, calls.Load())
		after(200 * time.Second) // let both end
	})
}

func TestAnErrorOfTheServerIsReportedAndAskedAgain(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"turn", "replace"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newTurns()
				s.fail(func(c string) error {
					if c == call {
						return ErrSuperseded
					}
					return nil
				})
				r := s.refreshes(t, returns("a"))
				synctest.Wait()
				require.Equal(t, []string{"refresh_failed berth: superseded by a newer replace"}, r.told())
				s.fail(nil)
				if call == "turn" {
					after(turnRetry)
				} else {
					after(every)
				}
				require.Equal(t, "refreshed 1", r.told()[1])
			})
		})
	}
}

func TestStopEndsTheSourceAndWaitsForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTurns()
		var cause error
		let := make(chan struct{})
		r := s.refreshes(t, func(ctx context.Context) ([]string, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			<-let
			return nil, ctx.Err()
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, r.stop(ctx), context.DeadlineExceeded, "it waits as long as it may")
		synctest.Wait()
		require.ErrorIs(t, cause, berth.ErrClosed)
		close(let)
		require.NoError(t, r.stop(context.Background()))
		require.NoError(t, r.stop(context.Background()))
		require.Empty(t, r.told(), "the end of the client is no fault of Source's")
		require.Empty(t, s.seen().replaces)
		after(2 * every)
		require.Len(t, s.seen().asked, 1)
		r.kick()
		require.NoError(t, (*refresher)(nil).stop(context.Background()))
		(*refresher)(nil).kick()
	})
}

func TestRefreshAsksNowOnTheCallersGoroutineWhoseverTurnItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTurns()
		answer, fault := []string{"a"}, error(nil)
		here := false
		r := s.refreshes(t, func(context.Context) ([]string, error) {
			stack := make([]byte, 1<<16)
			calls, _, _ := strings.Cut(string(stack[:runtime.Stack(stack, false)]), "created by")
			here = strings.Contains(calls, ".(*refresher).refreshNow(")
			return answer, fault
		})
		synctest.Wait()
		require.False(t, here)
		asked := len(s.seen().asked)

		answer = []string{"b", "c", "b"}
		change, err := r.refreshNow(context.Background())
		require.NoError(t, err)
		require.Equal(t, Change{Added: 2}, change)
		require.True(t, here)
		require.Equal(t, [][]string{{"a"}, {"b", "c"}}, s.seen().replaces)
		require.Len(t, s.seen().asked, asked)

		fault = errMyOwn
		_, err = r.refreshNow(context.Background())
		require.Equal(t, errMyOwn, err)
		answer, fault = nil, nil
		_, err = r.refreshNow(context.Background())
		require.ErrorIs(t, err, errEmpty)
		answer = []string{"a"}
		s.fail(func(string) error { return ErrSuperseded })
		change, err = r.refreshNow(context.Background())
		require.ErrorIs(t, err, ErrSuperseded)
		require.Equal(t, Change{Added: 1}, change, "what was done before")
		require.Equal(t, []string{
			"refreshed 1", "refreshed 2", "refresh_failed my own reason", "refresh_failed " + errEmpty.Error(),
			"refresh_failed berth: superseded by a newer replace",
		}, r.told())
	})
}

func TestAPanicInRefreshIsItsCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTurns()
		r := s.refreshes(t, func(context.Context) ([]string, error) { panic("mine") })
		synctest.Wait()
		require.PanicsWithValue(t, "mine", func() { _, _ = r.refreshNow(context.Background()) })
	})
}

func TestRefreshEndsWithItsContextAndWithTheClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTurns()
		s.postpone(time.Hour)
		var calls atomic.Int32
		r := s.refreshes(t, func(ctx context.Context) ([]string, error) {
			calls.Add(1)
			<-ctx.Done()
			return nil, errors.Join(ctx.Err(), context.Cause(ctx))
		})
		ctx, cancel := context.WithCancelCause(context.Background())
		results := make(chan error, 2)
		go func() { _, err := r.refreshNow(ctx); results <- err }()
		synctest.Wait()
		cancel(errMyOwn)
		require.ErrorIs(t, <-results, errMyOwn)
		go func() { _, err := r.refreshNow(context.Background()); results <- err }()
		synctest.Wait()
		require.NoError(t, r.stop(context.Background()))
		require.ErrorIs(t, <-results, berth.ErrClosed)
		_, err := r.refreshNow(context.Background())
		require.ErrorIs(t, err, berth.ErrClosed)
		require.EqualValues(t, 2, calls.Load(), "Source is not asked any more")
	})
}
