package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// within is how long a release is repeated, and cleanup how long a caller waits for one
// who has left.
const (
	within  = 10 * time.Second
	cleanup = 2 * time.Second
)

var errMine = errors.New("my own reason")

// mute is a server that may answer late: who may wait is queued, who may not is granted.
type mute struct {
	fake
	acquire time.Duration // how long the answer to an acquire is on its way
	clock   clock.Clock

	mu     sync.Mutex
	speaks time.Duration   // guarded by mu: no release is answered before that
	asked  int             // guarded by mu: acquires
	came   []time.Duration // guarded by mu: when releases came
	stays  []time.Duration // guarded by mu: of the tombstones
	failed []error         // guarded by mu: release_failed and cleanup_failed
}

func (m *mute) Acquire(ctx context.Context, c *engine.Claim) (engine.Answer, error) {
	m.mu.Lock()
	m.asked++
	m.mu.Unlock()
	<-time.After(m.acquire)
	if c.MayWait && c.Name == "queued" {
		return engine.Answer{Ticket: 1, Place: "254 1", Left: wait, NextDeadline: engine.NextDeadline{In: -1}}, nil
	}
	return m.fake.Acquire(ctx, c)
}

func (m *mute) Beat(ctx context.Context, name string, mode engine.Mode, claims []*engine.Claim) (engine.Round, error) {
	round, err := m.fake.Beat(ctx, name, mode, claims)
	for i := range round.Status {
		if name == "queued" {
			round.Status[i] = isWaiting
		}
	}
	return round, err
}

func (m *mute) BeatMany(ctx context.Context, batches []engine.Batch, answered func(int, engine.Round, error)) {
	oneByOne(ctx, m.Beat, batches, answered)
}

// Release is repeated for as long as Retry allows, as in the scripts of the primitives.
func (m *mute) Release(ctx context.Context, c *engine.Claim, stays time.Duration) (engine.Parting, error) {
	m.mu.Lock()
	now := m.clock.Now()
	speaks := m.speaks - now
	m.came, m.stays = append(m.came, now), append(m.stays, stays)
	m.mu.Unlock()
	err := context.Cause(ctx)
	if err == nil {
		select {
		case <-time.After(max(0, min(speaks, within))):
			err = errors.New("no answer")
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if m.clock.Now() < now+speaks {
		return engine.Parting{}, &scriptkit.Error{MaybeRan: true, Repeatable: true, Unavailable: true, Err: err}
	}
	return m.fake.Release(ctx, c, stays)
}

// silent has the server answer no release before a moment.
func (m *mute) silent(until time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.speaks = until
}

// seen are how many acquires came, and when releases did, all of them without a tombstone.
func (m *mute) seen(t *testing.T) (asked int, came []time.Duration) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, stays := range m.stays {
		require.Zero(t, stays)
	}
	return m.asked, append([]time.Duration{}, m.came...)
}

func (m *mute) failures() []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]error{}, m.failed...)
}

// onMute runs a test in virtual time with an engine on such a server.
func onMute(t *testing.T, m *mute, test func(t *testing.T, e *engine.Engine)) {
	t.Helper()
	onEngine(t, m, engine.Config{Scripts: m, CallTimeout: within}, test)
}

// onEngine is onMute with settings.
func onEngine(t *testing.T, m *mute, cfg engine.Config, test func(t *testing.T, e *engine.Engine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m.fence, m.resource, m.clock = 1, "r1", clock.New()
		server, err := embedded.Start()
		require.NoError(t, err)
		defer server.Close()
		redis, err := server.Client()
		require.NoError(t, err)
		defer redis.Close()
		cfg.Redis, cfg.Channel, cfg.Node, cfg.Wait, cfg.CleanupTimeout, cfg.Clock = unheard{redis}, "c", "n", wait, cleanup, m.clock
		cfg.Observe = func(ev observe.Event) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if ev.Kind == observe.ReleaseFailed || ev.Kind == observe.CleanupFailed {
				m.failed = append(m.failed, ev.Err)
			}
		}
		e := engine.New(cfg)
		defer func() { _ = e.Close(context.Background()) }()
		test(t, e)
	})
}

// waits has a claim wait in line.
func waits(ctx context.Context, e *engine.Engine, maxWait time.Duration) error {
	r := engine.Record{Weight: 1, Wait: wait, Lease: wait}
	_, err := e.Acquire(ctx, &engine.Claim{ID: e.ClaimID(), Name: "queued", Record: r, MayWait: true}, maxWait)
	return err
}

// inBackground runs a call, and lets everything settle.
func inBackground(call func() error) <-chan error {
	returned := make(chan error, 1)
	go func() { returned <- call() }()
	synctest.Wait()
	return returned
}

// closes closes an engine in the background.
func closes(e *engine.Engine) <-chan error {
	return inBackground(func() error { return e.Close(context.Background()) })
}
