package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// callTimeout is shorter than what Retry allows, as it is by default.
const callTimeout = 3 * time.Second

// halves answers the releases of some names after a way there and back, and those of others, "away", never.
type halves struct {
	mute
	way    time.Duration
	first  time.Duration // until when nobody is answered
	leaves bool          // a release ends its goroutine

	mu     sync.Mutex
	back   int           // guarded by mu: releases that were answered
	latest time.Duration // guarded by mu: when the last one was
}

func (h *halves) Release(ctx context.Context, c *engine.Claim, stays time.Duration) (engine.Parting, error) {
	if strings.HasPrefix(c.Name, "away") {
		select {
		case <-time.After(within):
		case <-ctx.Done():
		}
		return engine.Parting{}, &scriptkit.Error{MaybeRan: true, Repeatable: true, Unavailable: true, Err: errors.New("no answer")}
	}
	time.Sleep(max(h.way, h.first-h.clock.Now()))
	if h.leaves {
		runtime.Goexit()
	}
	h.mu.Lock()
	h.back, h.latest = h.back+1, h.clock.Now()
	h.mu.Unlock()
	return h.fake.Release(ctx, c, stays)
}

// fill has the engine hold some names, and others that are away.
func fill(t *testing.T, e *engine.Engine, here, away int) {
	t.Helper()
	for i := range here + away {
		name := fmt.Sprint("here", i)
		if i >= here {
			name = fmt.Sprint("away", i)
		}
		r := engine.Record{Weight: 1, Wait: wait, Lease: wait}
		_, err := e.Acquire(context.Background(), &engine.Claim{ID: e.ClaimID(), Name: name, Record: r}, 0)
		require.NoError(t, err)
	}
}

// A shard that is away holds up nobody, and all that lies there is waited for once.
func TestACloseBesideNamesThatAreAway(t *testing.T) {
	for name, c := range map[string]struct {
		here, away int
		way, first time.Duration
		known      bool          // which server has which name
		soon       time.Duration // when the last one that is here is back, at the latest
	}{
		"as many":            {here: 2000, away: 2000, way: time.Millisecond, soon: 500 * time.Millisecond},
		"few that are away":  {here: 2000, away: 20, way: time.Millisecond, soon: 100 * time.Millisecond},
		"a server far off":   {here: 2000, away: 2000, way: 200 * time.Millisecond, soon: 5 * time.Second},
		"all slow at first":  {here: 2000, away: 2000, way: time.Millisecond, first: within / 3, soon: within/3 + time.Second},
		"few that are here":  {here: 10, away: 4000, way: time.Millisecond, known: true, soon: 2 * time.Millisecond},
		"as many, and known": {here: 2000, away: 2000, way: time.Millisecond, known: true, soon: 9 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			h := &halves{way: c.way, first: c.first}
			server := func(name string) int { return strings.Count(name, "away") }
			if !c.known {
				server = nil
			}
			onEngine(t, &h.mute, engine.Config{Scripts: h, Server: server, CallTimeout: callTimeout}, func(t *testing.T, e *engine.Engine) {
				fill(t, e, c.here, c.away)
				begun := e.Now()
				err := e.Close(context.Background())
				require.ErrorIs(t, err, berth.ErrUnavailable)
				require.ErrorContains(t, err, fmt.Sprintf("%d more holds", c.away-10))
				require.NotErrorIs(t, err, context.DeadlineExceeded, "nobody's context has ended")
				require.Equal(t, c.here, h.back)
				require.LessOrEqual(t, h.latest-begun, c.soon)
				require.Len(t, h.failures(), c.away)
				require.LessOrEqual(t, e.Now()-begun, within+callTimeout+time.Second)
			})
		})
	}
}

// An observer that ends its goroutine, as a failed test does, ends no Close.
func TestACloseOutlastsAnObserverThatLeaves(t *testing.T) {
	h := &halves{way: time.Millisecond, leaves: true}
	onEngine(t, &h.mute, engine.Config{Scripts: h, CallTimeout: callTimeout}, func(t *testing.T, e *engine.Engine) {
		fill(t, e, 300, 0) // more than have a place
		require.ErrorIs(t, e.Close(context.Background()), berth.ErrUnavailable)
	})
}
