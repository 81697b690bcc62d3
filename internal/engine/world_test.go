package engine_test

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// wait is the wait lease, and the lease, of the claims of these tests.
const wait = 6 * time.Second

// fake is a server that holds one claim, by a grant that a test changes.
type fake struct {
	engine.Scripts // of what no test asks

	mu       sync.Mutex
	fence    int64         // guarded by mu
	resource string        // guarded by mu
	slow     time.Duration // guarded by mu: how long the answer of the next beat is on its way
	beats    atomic.Int64
	released atomic.Int64
	word     engine.Released // guarded by mu: what a release is told if it is not empty
	left     time.Duration   // what an acquire leaves of the hold if it is not 0

	// What a test does besides, nil for nothing: with mu held when an acquire has run, when a heartbeat has, and before a release.
	acquired func()
	beaten   func(round *engine.Round) error
	parts    func()
}

// grants changes what the claim holds, as after a failover.
func (f *fake) grants(fence int64, resource string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fence, f.resource = fence, resource
}

// slows delays the answer of the next beat, which runs at once.
func (f *fake) slows(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slow = d
}

func (f *fake) Acquire(_ context.Context, c *engine.Claim) (engine.Answer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := engine.Answer{
		Granted: true, Confirmed: !c.Record.NoRenew, Ticket: 1, Fence: f.fence, Resource: f.resource, Left: cmp.Or(f.left, wait),
		NextDeadline: nothingDue,
	}
	if f.acquired != nil {
		f.acquired()
	}
	return a, nil
}

func (f *fake) Beat(_ context.Context, _ string, _ engine.Mode, claims []*engine.Claim) (engine.Round, error) {
	f.mu.Lock()
	status := engine.Status{Word: engine.WordHeld, Left: wait, Fence: f.fence, Resource: f.resource}
	slow := f.slow
	f.slow = 0
	f.beats.Add(1)
	f.mu.Unlock()
	<-time.After(slow)
	round := roundOf(claims, status)
	if f.beaten == nil {
		return round, nil
	}
	return round, f.beaten(&round)
}

func (f *fake) Load(context.Context) error { return nil }

func (f *fake) Release(context.Context, *engine.Claim, time.Duration) (engine.Parting, error) {
	if f.parts != nil {
		f.parts()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.released.Add(1)
	return engine.Parting{Word: cmp.Or(f.word, engine.GivenBack), Fence: f.fence}, nil
}

func (f *fake) Sweep(context.Context, engine.Line) (engine.NextDeadline, error) {
	return nothingDue, nil
}

func (f *fake) Key(at engine.Line) string { return at.Name }

// byName asks for the heartbeats of each name by themselves.
type byName struct{ engine.Scripts }

func (s byName) BeatMany(ctx context.Context, batches []engine.Batch, answered func(int, engine.Round, error)) {
	var all sync.WaitGroup
	for i, b := range batches {
		all.Go(func() {
			round, err := s.Beat(ctx, b.Name, engine.ModeBeat, b.Claims)
			answered(i, round, err)
		})
	}
	all.Wait()
}

// What servers answer.
var (
	nothingDue = engine.NextDeadline{In: -1}
	isQueued   = engine.Answer{Ticket: 1, Place: "254 1", Left: wait, NextDeadline: nothingDue}

	isHeld    = engine.Status{Word: engine.WordHeld, Left: wait, Fence: 1, Resource: "r1"}
	isWaiting = engine.Status{Word: engine.WordWaiting, Left: wait}
	isUnknown = engine.Status{Word: engine.WordUnknown}
	isGone    = engine.Status{Word: engine.WordReleased}
)

// never is when an answer comes that does not.
const never = time.Hour

func roundOf(claims []*engine.Claim, status engine.Status) engine.Round {
	round := engine.Round{NextDeadline: nothingDue}
	for range claims {
		round.Status = append(round.Status, status)
	}
	return round
}

// unanswered is the error of a call that was not answered.
func unanswered() error {
	return &scriptkit.Error{MaybeRan: true, Repeatable: true, Unavailable: true, Err: errors.New("no answer")}
}

// told is what an engine has told.
type told struct {
	mu     sync.Mutex
	events []observe.Event // guarded by mu
}

func (s *told) take(ev observe.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, ev)
}

func (s *told) kinds() (kinds []observe.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ev := range s.events {
		kinds = append(kinds, ev.Kind)
	}
	return kinds
}

// of are the events of a kind.
func (s *told) of(kind observe.Kind) (found []observe.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ev := range s.events {
		if ev.Kind == kind {
			found = append(found, ev)
		}
	}
	return found
}

// begin makes an engine on a server, which can be closed at the end of the test, and what it tells.
func begin(t *testing.T, s engine.Scripts, change ...func(*engine.Config)) (*engine.Engine, *told) {
	t.Helper()
	e, seen := unclosed(s, change...)
	t.Cleanup(func() { require.NoError(t, e.Close(context.Background())) })
	return e, seen
}

// unclosed is begin for a test that closes the engine.
func unclosed(s engine.Scripts, change ...func(*engine.Config)) (*engine.Engine, *told) {
	seen := &told{}
	cfg := engine.Config{
		Scripts: byName{s}, Node: "n", Channel: "c", Wait: wait, CallTimeout: 10 * time.Second, CleanupTimeout: time.Second,
		Clock: clock.New(), Observe: seen.take,
	}
	for _, f := range change {
		f(&cfg)
	}
	return engine.New(cfg), seen
}

// connected is a client whose subscriptions come about.
func connected(t *testing.T) rueidis.Client {
	t.Helper()
	server, err := embedded.Start()
	require.NoError(t, err)
	t.Cleanup(server.Close)
	redis, err := server.Client()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	return redis
}

// unheard is a client whose subscriptions do not come about, so that nobody who waits asks
// at once.
type unheard struct{ rueidis.Client }

func (unheard) Receive(ctx context.Context, _ rueidis.Completed, _ func(rueidis.PubSubMessage)) error {
	<-ctx.Done()
	return ctx.Err()
}

// onFake runs a test in virtual time with an engine on a fake server.
func onFake(t *testing.T, test func(t *testing.T, f *fake, e *engine.Engine, lost func() int)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{fence: 1, resource: "r1"}
		e, seen := begin(t, f)
		test(t, f, e, func() int { return len(seen.of(observe.Lost)) })
	})
}

// claimOf is a claim of a name.
func claimOf(e *engine.Engine, name string) *engine.Claim {
	return &engine.Claim{ID: e.ClaimID(), Name: name, Record: engine.Record{Weight: 1, Wait: wait, Lease: wait}}
}

// hold gets a claim of a name.
func hold(t *testing.T, e *engine.Engine, name string, change ...func(*engine.Record)) *engine.Hold {
	t.Helper()
	c := claimOf(e, name)
	for _, f := range change {
		f(&c.Record)
	}
	h, err := e.Acquire(context.Background(), c, 0)
	require.NoError(t, err)
	return h
}

// take gets a claim of x.
func take(t *testing.T, e *engine.Engine, change ...func(*engine.Record)) *engine.Hold {
	t.Helper()
	return hold(t, e, "x", change...)
}

// adopt takes up the grant that a fake has made.
func adopt(e *engine.Engine) (*engine.Hold, error) {
	c := claimOf(e, "x")
	c.ID = "m.1"
	return e.Adopt(context.Background(), c, e.Now(), 1, "r1", wait)
}

// asksInBackground has a claim wait in line.
func asksInBackground(ctx context.Context, e *engine.Engine, c *engine.Claim, maxWait time.Duration) <-chan error {
	c.MayWait = true
	return inBackground(func() error {
		_, err := e.Acquire(ctx, c, maxWait)
		return err
	})
}

// inBackground runs a call, and lets everything settle.
func inBackground(call func() error) <-chan error {
	returned := make(chan error, 1)
	go func() { returned <- call() }()
	synctest.Wait()
	return returned
}

// after lets virtual time pass.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// refused fails unless an error is a refusal, which it returns.
func refused(t *testing.T, err error) *berth.AcquireError {
	t.Helper()
	refusal, ok := errors.AsType[*berth.AcquireError](err)
	require.True(t, ok, "%v", err)
	return refusal
}
