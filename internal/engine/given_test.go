package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/observe"
)

// forgetful is a server that grants each claim, and takes down the releases that it is sent.
type forgetful struct {
	fake
	given   []string // guarded by mu: names, in order
	down    bool     // guarded by mu: no release is answered
	unknown bool     // guarded by mu: a heartbeat's claim
}

func (f *forgetful) Release(_ context.Context, c *engine.Claim, _ time.Duration) (engine.Parting, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.given = append(f.given, c.Name)
	if f.down {
		return engine.Parting{}, unanswered()
	}
	return engine.Parting{Word: engine.GivenBack, Fence: f.fence}, nil
}

func (f *forgetful) says(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// drain returns the releases since the last call.
func (f *forgetful) drain() (all []string) {
	f.says(func() { all, f.given = f.given, nil })
	return all
}

// onForgetful runs a test in virtual time.
func onForgetful(t *testing.T, test func(t *testing.T, f *forgetful, e *engine.Engine, again func() int)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, redis := &forgetful{fake: fake{fence: 10, left: -1}}, connected(t)
		f.beaten = func(round *engine.Round) error {
			f.says(func() {
				if f.unknown {
					round.Status[0] = isUnknown
				}
			})
			return nil
		}
		e, seen := begin(t, f, func(cfg *engine.Config) { cfg.Redis, cfg.CallTimeout = unheard{redis}, time.Second })
		test(t, f, e, func() int { return len(seen.of(observe.ReleasedAgain)) })
	})
}

// leased acquires a name with a lease.
func leased(t *testing.T, e *engine.Engine, name string, lease time.Duration) *engine.Hold {
	t.Helper()
	return hold(t, e, name, func(r *engine.Record) { r.Lease = lease })
}

func TestLongReleasesAreAskedAgainAfterASign(t *testing.T) {
	signs := map[string]func(t *testing.T, f *forgetful, e *engine.Engine){
		"the owner of the engine says so": func(_ *testing.T, _ *forgetful, e *engine.Engine) { e.LostData() },
		"a hold that is not known": func(t *testing.T, f *forgetful, e *engine.Engine) {
			f.says(func() { f.unknown = true })
			h := leased(t, e, "watched", wait)
			<-h.Context().Done()
			f.says(func() { f.unknown = false })
		},
		"a fence that has gone back": func(t *testing.T, f *forgetful, e *engine.Engine) {
			f.says(func() { f.fence = 9 })
			leased(t, e, "endless", wait)
		},
	}
	for name, sign := range signs {
		t.Run(name, func(t *testing.T) {
			onForgetful(t, func(t *testing.T, f *forgetful, e *engine.Engine, again func() int) {
				for name, lease := range map[string]time.Duration{"endless": berth.Forever, "long": 2 * wait, "short": wait} {
					require.NoError(t, leased(t, e, name, lease).Release(t.Context()))
				}
				require.Len(t, f.drain(), 3)
				sign(t, f, e)
				synctest.Wait()
				require.ElementsMatch(t, []string{"endless", "long"}, f.drain())
				require.Equal(t, 2, again())
			})
		})
	}
}

func TestReleasesThatAreNotAnsweredAreAskedUntilTheyAre(t *testing.T) {
	onForgetful(t, func(t *testing.T, f *forgetful, e *engine.Engine, again func() int) {
		f.says(func() { f.down = true })
		require.ErrorIs(t, leased(t, e, "endless", berth.Forever).Release(t.Context()), berth.ErrUnavailable)
		f.drain()
		e.LostData()
		synctest.Wait()
		require.Equal(t, []string{"endless"}, f.drain())
		after(wait)
		require.Equal(t, []string{"endless"}, f.drain())
		f.says(func() { f.down = false })
		after(wait)
		require.Equal(t, []string{"endless"}, f.drain())
		require.Equal(t, 1, again())
		after(10 * wait)
		require.Empty(t, f.drain(), "nothing has been lost since")
	})
}

func TestSignsThatComeTogetherAreHeededOnceMore(t *testing.T) {
	onForgetful(t, func(t *testing.T, f *forgetful, e *engine.Engine, _ func() int) {
		require.NoError(t, leased(t, e, "endless", berth.Forever).Release(t.Context()))
		f.drain()
		for range 100 {
			e.LostData()
		}
		after(10 * wait)
		require.LessOrEqual(t, len(f.drain()), 2)
	})
}

func TestTheOldestOfTooManyReleasesIsForgotten(t *testing.T) {
	onForgetful(t, func(t *testing.T, f *forgetful, e *engine.Engine, _ func() int) {
		for n := range 10_001 {
			require.NoError(t, leased(t, e, fmt.Sprint(n), berth.Forever).Release(t.Context()))
		}
		f.drain()
		e.LostData()
		synctest.Wait()
		asked := f.drain()
		require.Len(t, asked, 10_000)
		require.NotContains(t, asked, "0")
		require.Contains(t, asked, "10000")
	})
}

func TestAnEngineThatClosesAsksNothingAgain(t *testing.T) {
	onForgetful(t, func(t *testing.T, f *forgetful, e *engine.Engine, _ func() int) {
		require.NoError(t, leased(t, e, "endless", berth.Forever).Release(t.Context()))
		f.says(func() { f.down = true })
		e.LostData()
		synctest.Wait()
		f.drain()
		began := time.Now()
		require.NoError(t, e.Close(t.Context()))
		require.Zero(t, time.Since(began))
		e.LostData()
		synctest.Wait()
		require.Empty(t, f.drain())
	})
}
