package refresh

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
	inTurns(t, func(t *testing.T, s *turns) {
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
			}, func(cfg *Config) {
				cfg.jitter = func(time.Duration) time.Duration { return time.Duration(n) * time.Millisecond }
			}))
			synctest.Wait()
		}
		after(2*every - time.Second)
		require.Equal(t, []string{"node 0 at 0s", "node 0 at 30s"}, asked())
		require.Equal(t, []string{"refreshed 2", "refreshed 2"}, all[0].told())
		require.Empty(t, all[1].told())
		all[0].Stop()
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
		{"an error", func(context.Context) ([]string, error) { return []string{"a"}, errMine }, "my own reason"},
		{"a panic", func(context.Context) ([]string, error) { panic("mine") }, "berth: Source panicked: mine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTurns(t, func(t *testing.T, s *turns) {
				var calls atomic.Int32
				r := s.refreshes(t, func(ctx context.Context) ([]string, error) {
					if calls.Add(1) == 2 {
						return []string{"good"}, nil
					}
					return c.source(ctx)
				})
				synctest.Wait()
				require.Equal(t, []string{"failed " + c.says}, r.told())
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
	inTurns(t, func(t *testing.T, s *turns) {
		began := time.Now()
		var asked []time.Duration
		s.refreshes(t, func(context.Context) ([]string, error) {
			asked = append(asked, time.Since(began))
			if len(asked) == 8 {
				return []string{"good"}, nil
			}
			return nil, errMine
		})
		after(3 * time.Minute)
		// Once it has answered, as often as ever, and after that the first retry is soon again.
		require.Equal(t, seconds(0, 1, 3, 7, 15, 31, 61, 91, 121, 122), asked[:10])
	})
}

func TestTheTurnIsKeptWhileTheSourceAndTheReplaceTakeLong(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		s.slow = 35 * time.Second
		s.fail(func(call string) error {
			if call == "stay" && len(s.stays) == 2 {
				return errMine // made good by the next
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
			inTurns(t, func(t *testing.T, s *turns) {
				s.fail(func(c string) error {
					if c == call {
						return errMine
					}
					return nil
				})
				r := s.refreshes(t, returns("a"))
				synctest.Wait()
				require.Equal(t, []string{"failed my own reason"}, r.told())
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
	inTurns(t, func(t *testing.T, s *turns) {
		var cause error
		let := make(chan struct{})
		r := s.refreshes(t, func(ctx context.Context) ([]string, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			<-let
			return nil, ctx.Err()
		})
		synctest.Wait()
		stopped := make(chan struct{})
		go func() { r.Stop(); close(stopped) }()
		after(time.Hour)
		require.ErrorIs(t, cause, berth.ErrClosed)
		select {
		case <-stopped:
			t.Error("Source runs still")
		default:
		}
		close(let)
		<-stopped
		r.Stop()
		require.Empty(t, r.told(), "the end of the client is no fault of Source's")
		require.Empty(t, s.seen().replaces)
		after(2 * every)
		require.Len(t, s.seen().asked, 1)
		r.Kick()
		require.True(t, r.Fill(context.Background(), 0), "nobody waits for what has ended")
	})
}

func TestWithoutARefresherThereIsNothingToDo(t *testing.T) {
	t.Parallel()
	var none *Refresher
	none.Kick()
	require.False(t, none.Fill(context.Background(), 0))
	require.NoError(t, none.LastError())
	none.End()
	none.Stop()
}

func TestNowAsksOnTheCallersGoroutineWhoseverTurnItIs(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		answer, fault := []string{"a"}, error(nil)
		here := false
		r := s.refreshes(t, func(context.Context) ([]string, error) {
			stack := make([]byte, 1<<16)
			calls, _, _ := strings.Cut(string(stack[:runtime.Stack(stack, false)]), "created by")
			here = strings.Contains(calls, ".(*Refresher).Now(")
			return answer, fault
		})
		synctest.Wait()
		require.False(t, here)
		asked := len(s.seen().asked)

		answer = []string{"b", "c"}
		var now [][]string
		replace := func(_ context.Context, resources []string) error {
			now = append(now, resources)
			return nil
		}
		s.leave("idle")
		r.mu.Lock()
		r.idles = []string{"idle"}
		r.mu.Unlock()
		require.NoError(t, r.Now(context.Background(), replace))
		require.True(t, here)
		require.Equal(t, []string{"idle"}, r.dropped())
		require.Equal(t, [][]string{{"b", "c"}}, now)
		require.Equal(t, [][]string{{"a"}}, s.seen().replaces)
		require.Len(t, s.seen().asked, asked)

		fault = errMine
		require.Equal(t, errMine, r.Now(context.Background(), replace))
		require.Equal(t, errMine, r.LastError())
		fault = nil
		require.NoError(t, r.Now(context.Background(), replace))
		require.NoError(t, r.LastError())
		replace = func(context.Context, []string) error { return errOther }
		require.Equal(t, errOther, r.Now(context.Background(), replace))
		require.Equal(t, errOther, r.LastError())
		require.Equal(t, []string{"refreshed 1", "refreshed 2", "failed my own reason", "refreshed 2", "failed another reason"}, r.told())
	})
}

func TestAPanicInNowIsItsCallers(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		r := s.refreshes(t, func(context.Context) ([]string, error) { panic("mine") })
		synctest.Wait()
		require.PanicsWithValue(t, "mine", func() { _ = r.Now(context.Background(), s.replace) })
	})
}

func TestNowEndsWithItsContextAndWithTheClient(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		s.postpone(time.Hour)
		var calls atomic.Int32
		r := s.refreshes(t, func(ctx context.Context) ([]string, error) {
			calls.Add(1)
			<-ctx.Done()
			return nil, errors.Join(ctx.Err(), context.Cause(ctx))
		})
		ctx, cancel := context.WithCancelCause(context.Background())
		results := make(chan error, 2)
		go func() { results <- r.Now(ctx, s.replace) }()
		synctest.Wait()
		cancel(errMine)
		require.ErrorIs(t, <-results, errMine)
		go func() { results <- r.Now(context.Background(), s.replace) }()
		synctest.Wait()
		r.Stop()
		require.ErrorIs(t, <-results, berth.ErrClosed)
		require.ErrorIs(t, r.Now(context.Background(), s.replace), berth.ErrClosed)
		require.EqualValues(t, 2, calls.Load(), "Source is not asked any more")
	})
}
