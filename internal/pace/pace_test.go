package pace

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

func TestPaceEndsWithItsAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(berth.Retry{Attempts: 3, Jitter: -1})
		begun := time.Now()
		require.True(t, p.Next(false))
		require.True(t, p.Pause(t.Context(), nil))
		require.Equal(t, 20*time.Millisecond, time.Since(begun))
		require.True(t, p.Next(false))
		require.True(t, p.Pause(t.Context(), nil))
		require.Equal(t, 60*time.Millisecond, time.Since(begun))
		require.False(t, p.Next(false))
		require.True(t, p.Next(true), "a call without a bound goes on")
	})
}

func TestPaceEndsWithin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(berth.Retry{Within: time.Second, Base: 300 * time.Millisecond, Jitter: -1})
		time.Sleep(700*time.Millisecond - 1)
		require.True(t, p.Next(false))
		time.Sleep(time.Nanosecond)
		require.False(t, p.Next(false), "the pause alone would take what is left")
	})
}

func TestPausesGrowToTheCapWithJitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(berth.Retry{Base: time.Second, Factor: 3, Cap: 10 * time.Second, Jitter: 0.5})
		longest := []time.Duration{time.Second, 3 * time.Second, 9 * time.Second}
		distinct := make(map[time.Duration]bool)
		for i := range 2000 { // enough to overflow a Duration that nobody caps
			begun := time.Now()
			require.True(t, p.Pause(t.Context(), nil))
			took := time.Since(begun)
			bound := 10 * time.Second
			if i < len(longest) {
				bound = longest[i]
			}
			require.LessOrEqual(t, took, bound)
			require.GreaterOrEqual(t, took, bound/2)
			distinct[took] = true
		}
		require.Greater(t, len(distinct), 1000)
	})
}

func TestAFirstPauseAboveTheCapIsCapped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(berth.Retry{Base: time.Hour, Cap: time.Second, Jitter: -1})
		begun := time.Now()
		require.True(t, p.Pause(t.Context(), nil))
		require.Equal(t, time.Second, time.Since(begun))
	})
}

func TestPauseEndsAtOnce(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"the context", "stop"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			stop := make(chan struct{})
			time.AfterFunc(time.Millisecond, func() {
				if how == "stop" {
					close(stop)
				} else {
					cancel()
				}
			})
			defer cancel()
			p := New(berth.Retry{Base: time.Hour, Cap: time.Hour})
			begun := time.Now()
			require.False(t, p.Pause(ctx, stop), how)
			require.Equal(t, time.Millisecond, time.Since(begun), how)
		})
	}
}
