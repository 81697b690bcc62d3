package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/keyspace"
)

// callTimeout is shorter than what Retry allows, as it is by default.
const callTimeout = 3 * time.Second

// halves answers the releases of some names after a way there and back, and those of others never: of
// names that are "away", and of pools. It grants all of these, but for pools that are not "granted".
type halves struct {
	mute
	way    time.Duration
	first  time.Duration // until when nobody is answered
	leaves bool          // a release ends its goroutine

	mu     sync.Mutex
	back   int           // guarded by mu: releases that were answered
	latest time.Duration // guarded by mu: when the last one was
}

// silent is a call that is not answered, until it counts as that.
func silent(ctx context.Context) error {
	select {
	case <-time.After(within):
	case <-ctx.Done():
	}
	return unanswered()
}

func (h *halves) Acquire(ctx context.Context, c *engine.Claim) (engine.Answer, error) {
	a, err := h.mute.Acquire(ctx, c)
	if c.Kind == keyspace.Pool && c.Name != "granted" {
		return engine.Answer{}, silent(ctx)
	}
	return a, err
}

func (h *halves) Release(ctx context.Context, c *engine.Claim, stays time.Duration) (engine.Parting, error) {
	if c.Kind == keyspace.Pool || strings.HasPrefix(c.Name, "away") {
		return engine.Parting{}, silent(ctx)
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
		hold(t, e, name)
	}
}

// closesBeside closes an engine, and fails unless what is here is back soon, and what is away has been waited for once.
func (h *halves) closesBeside(t *testing.T, e *engine.Engine, here, away int, soon time.Duration) {
	t.Helper()
	begun := e.Now()
	err := e.Close(context.Background())
	require.ErrorIs(t, err, berth.ErrUnavailable)
	require.ErrorContains(t, err, fmt.Sprintf("%d more holds", away-10))
	require.NotErrorIs(t, err, context.DeadlineExceeded, "nobody's context has ended")
	require.Equal(t, here, h.back)
	require.LessOrEqual(t, h.latest-begun, soon)
	require.Len(t, h.failures(), away)
	require.LessOrEqual(t, e.Now()-begun, within+callTimeout+time.Second)
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
			onEngine(t, h, &h.mute, callTimeout, server, func(t *testing.T, e *engine.Engine) {
				fill(t, e, c.here, c.away)
				h.closesBeside(t, e, c.here, c.away, c.soon)
			})
		})
	}
}

// An observer that ends its goroutine, as a failed test does, ends no Close.
func TestACloseOutlastsAnObserverThatLeaves(t *testing.T) {
	h := &halves{way: time.Millisecond, leaves: true}
	onEngine(t, h, &h.mute, callTimeout, nil, func(t *testing.T, e *engine.Engine) {
		fill(t, e, 300, 0) // more than have a place
		require.ErrorIs(t, e.Close(context.Background()), berth.ErrUnavailable)
	})
}

// of is a claim of a kind.
func of(e *engine.Engine, kind keyspace.Kind, name string) *engine.Claim {
	c := claimOf(e, name)
	c.Kind, c.MayWait = kind, true
	return c
}

// All kinds of a node share its gates. A storm of one kind, whose asks take all the room and are never answered, must not have the
// others stand in line behind it: they would wait for as long as its calls are repeated.
func TestAStormOfOneKindHoldsUpNoOther(t *testing.T) {
	h := &halves{}
	h.acquire = time.Millisecond
	onEngine(t, h, &h.mute, callTimeout, nil, func(t *testing.T, e *engine.Engine) {
		ctx, cancel := context.WithCancel(context.Background())
		var storm sync.WaitGroup
		for i := range 3000 {
			storm.Go(func() { _, _ = e.Acquire(ctx, of(e, keyspace.Pool, fmt.Sprint("p", i)), 0) })
		}
		synctest.Wait()
		asked, _ := h.seen(t)
		require.Equal(t, mostAsking, asked, "the window is full, and the others wait for room")
		for _, kind := range []keyspace.Kind{keyspace.Lock, keyspace.Sem} {
			for range 3 {
				begun := e.Now()
				held, err := e.Acquire(context.Background(), of(e, kind, "x"), 0)
				require.NoError(t, err)
				require.Equal(t, h.acquire, e.Now()-begun)
				require.NoError(t, held.Release(context.Background()))
			}
		}
		cancel()
		storm.Wait()
	})
}

// A Close gives all kinds back side by side: what is answered is back as soon as without the others, though these fill all the places
// that there are, and they are waited for once.
func TestACloseBesideAKindThatIsAway(t *testing.T) {
	const many = 2000
	h := &halves{way: time.Millisecond}
	onEngine(t, h, &h.mute, callTimeout, nil, func(t *testing.T, e *engine.Engine) {
		for _, kind := range []keyspace.Kind{keyspace.Pool, keyspace.Lock, keyspace.Sem} {
			for range many {
				_, err := e.Acquire(context.Background(), of(e, kind, "granted"), 0)
				require.NoError(t, err)
			}
		}
		h.closesBeside(t, e, 2*many, many, 500*time.Millisecond)
	})
}
