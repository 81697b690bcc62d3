package refresh

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

func TestOneNodeAtATimeAsksTheSourceAndAnotherGoesOnWhenItIsGone(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		var asked []string // guarded by the turns' mu
		var all []*refreshes
		for n := range 3 {
			all = append(all, s.refreshes(t, func(context.Context) ([]string, error) {
				s.set(func() { asked = append(asked, fmt.Sprintf("node %d at %v", n, time.Since(s.began))) })
				return []string{"a", "b"}, nil
			}, func(cfg *Config) {
				cfg.jitter = func(time.Duration) time.Duration { return time.Duration(n) * time.Millisecond }
			}))
			s.after(0)
		}
		s.after(2*every - time.Second)
		require.Equal(t, []string{"node 0 at 0s", "node 0 at 30s"}, asked)
		require.Equal(t, []string{"refreshed 2", "refreshed 2"}, all[0].told)
		require.Empty(t, all[1].told)
		all[0].Stop()
		s.after(2 * time.Second)
		require.Equal(t, []string{"node 0 at 0s", "node 0 at 30s", "node 1 at 1m0.001s"}, asked)
		require.Equal(t, [][]string{{"a", "b"}, {"a", "b"}, {"a", "b"}}, s.replaces)
	})
}

func TestASourceThatFailsIsAskedAgainSoonAndThenLessAndLessOften(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		var asked []time.Duration
		r := s.refreshes(t, func(context.Context) ([]string, error) {
			asked = append(asked, time.Since(s.began))
			switch len(asked) {
			case 2:
				panic("mine")
			case 8:
				return []string{"good"}, nil
			}
			return []string{"a"}, errMine
		})
		s.after(3 * time.Minute)
		// Once it has answered, as often as ever, and after that the first retry is soon again.
		require.Equal(t, seconds(0, 1, 3, 7, 15, 31, 61, 91, 121, 122), asked[:10])
		require.Equal(t, []string{"failed my own reason", "failed berth: Source panicked: mine"}, r.told[:2])
		require.Equal(t, "refreshed 1", r.told[7])
		require.Equal(t, [][]string{{"good"}}, s.replaces)
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
		s.after(0)
		s.refreshes(t, source)
		s.after(100*time.Second + time.Millisecond)
		require.EqualValues(t, 1, calls.Load())
		require.Equal(t, []string{"refreshed 1"}, first.told)
		require.Equal(t, seconds(10, 20, 30, 40, 50, 60, 70, 80, 90, 100)[:9], s.stays[:9])
		count := len(s.stays)
		s.after(20 * time.Second)
		require.Len(t, s.stays, count, "it ends with the Replace")
		s.after(11 * time.Second)
		require.EqualValues(t, 2, calls.Load())
		s.after(200 * time.Second) // let both end
	})
}

func TestAnErrorOfTheServerIsReportedAndAskedAgain(t *testing.T) {
	t.Parallel()
	for call, again := range map[string]time.Duration{"turn": turnRetry, "replace": firstRetry} {
		t.Run(call, func(t *testing.T) {
			inTurns(t, func(t *testing.T, s *turns) {
				s.fail(func(c string) error {
					if c == call {
						return errMine
					}
					return nil
				})
				r := s.refreshes(t, returns("a"))
				s.after(0)
				require.Equal(t, []string{"failed my own reason"}, r.told)
				s.fail(nil)
				s.after(again)
				require.Equal(t, "refreshed 1", r.told[1])
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
		s.after(0)
		stopped := make(chan struct{})
		go func() { r.Stop(); close(stopped) }()
		s.after(time.Hour)
		require.ErrorIs(t, cause, berth.ErrClosed)
		select {
		case <-stopped:
			t.Error("Source runs still")
		default:
		}
		close(let)
		<-stopped
		r.Stop()
		require.Empty(t, r.told, "the end of the client is no fault of Source's")
		require.Empty(t, s.replaces)
		s.after(2 * every)
		require.Len(t, s.asked, 1)
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
			if here = strings.Contains(calls, ".(*Refresher).Now("); here && answer == nil {
				panic("mine")
			}
			return answer, fault
		})
		s.after(0)
		require.False(t, here)
		asked := len(s.asked)

		answer = []string{"b", "c"}
		var now [][]string
		replace := func(_ context.Context, resources []string) error {
			now = append(now, resources)
			return nil
		}
		s.set(func() { s.gone, r.idles = []string{"idle"}, []string{"idle"} })
		require.NoError(t, r.Now(context.Background(), replace))
		require.True(t, here)
		require.Equal(t, []string{"idle"}, r.dropped)
		require.Equal(t, [][]string{{"b", "c"}}, now)
		require.Equal(t, [][]string{{"a"}}, s.replaces)
		require.Len(t, s.asked, asked)

		fault = errMine
		require.Equal(t, errMine, r.Now(context.Background(), replace))
		require.Equal(t, errMine, r.LastError())
		fault = nil
		require.NoError(t, r.Now(context.Background(), replace))
		require.NoError(t, r.LastError())
		replace = func(context.Context, []string) error { return errOther }
		require.Equal(t, errOther, r.Now(context.Background(), replace))
		require.Equal(t, errOther, r.LastError())
		require.Equal(t, []string{"refreshed 1", "refreshed 2", "failed my own reason", "refreshed 2", "failed another reason"}, r.told)
		answer = nil
		require.PanicsWithValue(t, "mine", func() { _ = r.Now(context.Background(), s.replace) }, "it is the caller's")
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
		s.after(0)
		cancel(errMine)
		require.ErrorIs(t, <-results, errMine)
		go func() { results <- r.Now(context.Background(), s.replace) }()
		s.after(0)
		r.Stop()
		require.ErrorIs(t, <-results, berth.ErrClosed)
		require.ErrorIs(t, r.Now(context.Background(), s.replace), berth.ErrClosed)
		require.EqualValues(t, 2, calls.Load(), "Source is not asked any more")
	})
}
