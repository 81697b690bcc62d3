package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
)

// requireLost fails unless the hold has ended, once, and was given back, once.
func requireLost(t *testing.T, f *fake, h *engine.Hold, lost func() int) {
	t.Helper()
	require.ErrorIs(t, h.Err(), berth.ErrLost)
	require.ErrorIs(t, context.Cause(h.Context()), berth.ErrLost)
	require.Equal(t, 1, lost())
	require.EqualValues(t, 1, f.released.Load())
	require.ErrorIs(t, h.Release(context.Background()), berth.ErrLost)
	require.EqualValues(t, 1, f.released.Load(), "it was given back already")
}

func TestAHoldEndsWhereTheServerKnowsItByAnotherGrant(t *testing.T) {
	const takenUp = "a heartbeat tells of a newer fence of what was taken up"
	beat := func(*engine.Hold) { after(wait / 3) }
	for name, c := range map[string]struct {
		fence    int64
		resource string
		ask      func(h *engine.Hold)
	}{
		"a heartbeat tells of a newer fence": {2, "r1", beat},
		"a heartbeat tells of an older one":  {-1, "r1", beat},
		takenUp:                              {2, "r1", beat},
		"Renew of another resource":          {2, "r2", func(h *engine.Hold) { _ = h.Renew(context.Background()) }},
		"Detach of a newer fence":            {2, "r1", func(h *engine.Hold) { _ = h.Detach(context.Background()) }},
		"Detach of another resource":         {1, "r2", func(h *engine.Hold) { _ = h.Detach(context.Background()) }},
	} {
		t.Run(name, func(t *testing.T) {
			onFake(t, func(t *testing.T, f *fake, e *engine.Engine, lost func() int) {
				var h *engine.Hold
				if name == takenUp {
					var err error
					require.NoError(t, e.Begin())
					h, err = adopt(e)
					e.End()
					require.NoError(t, err)
				} else {
					h = take(t, e)
				}
				after(wait / 3)
				require.NoError(t, h.Err())
				f.grants(c.fence, c.resource)
				c.ask(h)
				synctest.Wait()
				requireLost(t, f, h, lost)
			})
		})
	}
}

// exchange starts a call that gets the next grant, and whose answer comes later.
func exchange(f *fake, h *engine.Hold, fence int64, resource string, later time.Duration) <-chan error {
	return inBackground(func() error {
		_, err := h.Exchange(context.Background(), func(context.Context) (engine.Exchanged, error) {
			f.grants(fence, resource)
			<-time.After(later)
			return engine.Exchanged{Fence: fence, Resource: resource}, nil
		})
		return err
	})
}

// A heartbeat does not wait for an exchange: it runs before, in between or after.
func TestAnExchangeAndAHeartbeatAtOnceEndNothing(t *testing.T) {
	t.Run("the beat's answer, from before, comes behind the exchange's", func(t *testing.T) {
		onFake(t, func(t *testing.T, f *fake, e *engine.Engine, lost func() int) {
			h := take(t, e)
			f.slows(500 * time.Millisecond)
			after(wait / 3)
			require.NoError(t, <-exchange(f, h, 2, "r2", 0))
			before := f.beats.Load()
			after(500 * time.Millisecond)
			require.Equal(t, before+1, f.beats.Load(), "it proves nothing, so another one asks at once")
			require.NoError(t, h.Err())
			require.Equal(t, "r2", h.Resource())
			f.grants(3, "r3")
			after(wait / 3)
			requireLost(t, f, h, lost)
		})
	})
	t.Run("the exchange's answer comes behind the beat's, which names the new grant", func(t *testing.T) {
		onFake(t, func(t *testing.T, f *fake, e *engine.Engine, lost func() int) {
			h := take(t, e)
			after(wait/3 - time.Second) // before the beat
			done := exchange(f, h, 2, "r2", 3*time.Second)
			after(2 * time.Second)
			require.EqualValues(t, 1, f.beats.Load(), "what proves nothing is asked again when the exchange is over")
			require.Zero(t, f.released.Load())
			require.NoError(t, h.Err())
			require.NoError(t, <-done)
			require.EqualValues(t, 2, h.Fence())
			after(2 * wait)
			require.NoError(t, h.Err())
			require.Zero(t, lost())
		})
	})
}
