package heartbeat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ms = time.Millisecond
	// lease is one whose third, sixth, ninth and thirtieth are whole ms.
	lease = 9 * time.Second
)

var errDown = errors.New("the server is down")

// sent is one call of Beat.
type sent struct {
	at     time.Duration
	key    string
	claims []string
	limit  time.Duration // how long its answer may take
}

// world is an engine in virtual time, with what it did.
type world struct {
	*Engine
	t     *testing.T
	clock clock.Clock

	mu      sync.Mutex
	sent    []sent
	flushed []flushed
	ended   map[string]end
	warns   map[string][]time.Duration
	fails   map[string][]time.Duration
}

// end is how a lease was reported over.
type end struct {
	at    time.Duration
	cause error
}

// server answers a beat of one batch. nil stands for one that renews everything.
type server func(ctx context.Context, key string, leases []*Lease) ([]Outcome, error)

// inWorld runs a test in virtual time, without jitter unless change sets it.
func inWorld(t *testing.T, answer server, test func(w *world), change ...func(*Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, clock: clock.New(), ended: map[string]end{},
			warns: map[string][]time.Duration{}, fails: map[string][]time.Duration{},
		}
		if answer == nil {
			answer = renewAll
		}
		cfg := Config{Clock: w.clock, Rand: func() float64 { return 0 }}
		each := apart(func(ctx context.Context, key string, leases []*Lease) ([]Outcome, error) {
			w.record(ctx, key, leases)
			return answer(ctx, key, leases)
		})
		cfg.Beat = func(ctx context.Context, batches []Batch, answered func(int, []Outcome, error)) {
			w.flies(ctx, batches)
			each(ctx, batches, answered)
		}
		for _, f := range change {
			f(&cfg)
		}
		w.Engine = New(cfg)
		defer w.Stop()
		test(w)
	})
}

// apart answers each batch of a flush by itself.
func apart(answer server) Beat {
	return func(ctx context.Context, batches []Batch, answered func(int, []Outcome, error)) {
		var all sync.WaitGroup
		for i, b := range batches {
			all.Go(func() {
				outcomes, err := answer(ctx, b.Key, b.Leases)
				answered(i, outcomes, err)
			})
		}
		all.Wait()
	}
}

// renewAll gives every lease its full length.
func renewAll(_ context.Context, _ string, leases []*Lease) ([]Outcome, error) {
	outcomes := make([]Outcome, len(leases))
	for i, l := range leases {
		l.mu.Lock()
		outcomes[i].Left = l.spec.Lease
		l.mu.Unlock()
	}
	return outcomes, nil
}

// after lets a server take its time, though no longer than its limit.
func after(d time.Duration, answer server) server {
	return func(ctx context.Context, key string, leases []*Lease) ([]Outcome, error) {
		select {
		case <-time.After(d):
			return answer(ctx, key, leases)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// always answers the same about every lease.
func always(out Outcome) server {
	return func(_ context.Context, _ string, leases []*Lease) ([]Outcome, error) {
		return slices.Repeat([]Outcome{out}, len(leases)), nil
	}
}

// hang answers when its limit has passed.
func hang(ctx context.Context, _ string, _ []*Lease) ([]Outcome, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func down(context.Context, string, []*Lease) ([]Outcome, error) { return nil, errDown }

// script answers the first calls with the given servers, and all further ones
// with the last of them.
func script(servers ...server) server {
	var mu sync.Mutex
	return func(ctx context.Context, key string, leases []*Lease) ([]Outcome, error) {
		mu.Lock()
		next := servers[0]
		if len(servers) > 1 {
			servers = servers[1:]
		}
		mu.Unlock()
		return next(ctx, key, leases)
	}
}

func (w *world) record(ctx context.Context, key string, leases []*Lease) {
	now := w.clock.Now()
	call := sent{at: now, key: key}
	if until, ok := ctx.Deadline(); ok {
		call.limit = time.Until(until)
	}
	for _, l := range leases {
		call.claims = append(call.claims, l.Claim.(string))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, call)
}

// flies notes a call of Beat.
func (w *world) flies(ctx context.Context, batches []Batch) {
	until, _ := ctx.Deadline()
	call := flushed{at: w.clock.Now(), limit: time.Until(until)}
	for _, b := range batches {
		call.keys = append(call.keys, b.Key)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushed = append(w.flushed, call)
}

// hold is the spec of a hold that renews and was granted right now.
func (w *world) hold(lease time.Duration) Spec {
	return Spec{Lease: lease, Ends: true, Renews: true, Deadline: Deadline(w.clock.Now(), lease, lease)}
}

// claim is the spec of a claim that waits since right now.
func (w *world) claim(lease time.Duration) Spec {
	spec := w.hold(lease)
	spec.Ends = false
	return spec
}

// holds adds so many holds from now on, all of a key or, if that is empty, each of its own.
func (w *world) holds(n int, key string, lease time.Duration) {
	for i := range n {
		w.add(fmt.Sprint(i), cmp.Or(key, fmt.Sprint(i)), w.hold(lease))
	}
}

// add registers a lease whose callbacks are recorded under the claim's name.
func (w *world) add(claim, key string, spec Spec, change ...func(*Spec)) *Lease {
	l := &Lease{Claim: claim}
	for _, f := range change {
		f(&spec)
	}
	w.addTo(l, key, spec)
	return l
}

func (w *world) addTo(l *Lease, key string, spec Spec) {
	name := l.Claim.(string)
	if spec.Ended == nil {
		spec.Ended = func(_ *Lease, cause error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if _, again := w.ended[name]; again {
				w.t.Errorf("%s ended twice", name)
			}
			w.ended[name] = end{w.clock.Now(), cause}
		}
	}
	spec.OnWarn = func(*Lease) { w.note(w.warns, name) }
	spec.Failed = func(*Lease, error) { w.note(w.fails, name) }
	w.Add(l, key, spec)
}

func (w *world) note(in map[string][]time.Duration, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in[name] = append(in[name], w.clock.Now())
}

// failed returns when beats of a claim failed so far.
func (w *world) failed(claim string) []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.fails[claim])
}

// until lets the time pass up to a moment, and all that happens at it happen.
func (w *world) until(at time.Duration) {
	time.Sleep(at - w.clock.Now())
	synctest.Wait()
}

// calls returns what was sent so far.
func (w *world) calls() []sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]sent(nil), w.sent...)
}

// times returns when something was sent, for all keys or those given.
func (w *world) times(keys ...string) []time.Duration {
	var times []time.Duration
	for _, call := range w.calls() {
		if len(keys) == 0 || slices.Contains(keys, call.key) {
			times = append(times, call.at)
		}
	}
	return times
}

// turns returns when each claim had its turns so far.
func (w *world) turns() map[string][]time.Duration {
	turns := map[string][]time.Duration{}
	for _, call := range w.calls() {
		for _, claim := range call.claims {
			turns[claim] = append(turns[claim], call.at)
		}
	}
	return turns
}

// beatsBy lets time pass, and fails unless beats have been sent at those moments alone.
func (w *world) beatsBy(until time.Duration, at ...time.Duration) {
	w.t.Helper()
	w.until(until)
	require.Equal(w.t, at, w.times())
}

// endsBy lets time pass, and fails unless a claim has ended so.
func (w *world) endsBy(until time.Duration, claim string, at time.Duration, cause error) {
	w.t.Helper()
	w.until(until)
	w.requireEnd(claim, at, cause)
}

func (w *world) requireEnd(claim string, at time.Duration, cause error) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Contains(w.t, w.ended, claim)
	require.Equal(w.t, end{at, cause}, w.ended[claim])
}

func (w *world) requireAlive(claims ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, claim := range claims {
		require.NotContains(w.t, w.ended, claim)
	}
}

// all returns what the engine has: its lanes, and how many of them, or of their
// leases, something is due for.
func (w *world) all() (lanes []track, due int) {
	w.Engine.mu.Lock()
	defer w.Engine.mu.Unlock()
	w.pending.each(never, w.enter)
	return slices.Collect(maps.Keys(w.lanes)), w.doors[0].ready.Len() + w.events.Len()
}

func (w *world) requireLanes(want ...track) {
	w.t.Helper()
	lanes, _ := w.all()
	require.ElementsMatch(w.t, want, lanes)
}

func (w *world) requireNothingLeft() {
	w.t.Helper()
	lanes, due := w.all()
	require.Empty(w.t, lanes)
	require.Zero(w.t, due)
}

// trackOf is the track of holds of a pace.
func trackOf(key string, pace time.Duration) track {
	return (&Spec{Lease: pace, Ends: true}).track(key)
}
