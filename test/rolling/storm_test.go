package rolling

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

const (
	stormProcesses = 6 // half of them of the previous release
	stormWorkers   = 2 // in each process, for each primitive
	stormRounds    = 30
	stormCapacity  = 3
)

// turn is one claim that was granted. Moments are counted from the storm's begin.
type turn struct {
	begun  time.Duration // when it was asked for
	queued time.Duration // when its process knew that it stands in line, 0 for at once
	fence  int64
}

// tally is what processes of two releases contend for.
type tally struct {
	*testing.T
	begun time.Time

	mu     sync.Mutex
	queued map[string]time.Duration // guarded by mu, by claim
	turns  map[string][]turn        // guarded by mu, by primitive

	held      atomic.Int64             // permits
	locked    atomic.Int64             // 1 while somebody has the lock
	lastFence atomic.Int64             // of the lock
	leased    map[string]*atomic.Int64 // by resource
	served    map[string]*atomic.Int64 // by release
	refused   atomic.Int64             // tries and short waits that got nothing
}

// Observe notes when a claim stood in line.
func (a *tally) Observe(e observe.Event) {
	if e.Kind == observe.Queued {
		a.mu.Lock()
		a.queued[e.Claim] = time.Since(a.begun)
		a.mu.Unlock()
	}
}

// note keeps a turn that was granted.
func (a *tally) note(primitive, release, claim string, fence int64, begun time.Duration) {
	a.served[release].Add(1)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turns[primitive] = append(a.turns[primitive], turn{begun, a.queued[claim], fence})
}

// Processes of the previous release and of today's contend for one semaphore, lock and
// pool at the same time: never more is held than there is, nobody is passed, and
// fences rise.
func TestReleasesContendInOneLine(t *testing.T) {
	t.Parallel()
	was := previous(t)
	testkit.RealTime(t)
	server, ns := harness.Shared(t), harness.Namespace(t)
	a := &tally{
		T: t, begun: time.Now(), queued: map[string]time.Duration{}, turns: map[string][]turn{},
		leased: map[string]*atomic.Int64{"r1": {}, "r2": {}, "r3": {}},
		served: map[string]*atomic.Int64{was.version: {}, today.version: {}},
	}
	older := newSwap(today.library, was.library)
	const long = time.Minute // no pause of the machine lasts as long
	heard := berth.Retry{Attempts: 1000, Within: long}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all sync.WaitGroup
	for i := range stormProcesses {
		redis, version := server.Client(t), today.version
		if i%2 == 0 {
			redis, version = older.client(redis), was.version
		}
		n, err := node.New(redis, node.Config{Namespace: ns, Lease: long, Observer: a, CallTimeout: long, CleanupTimeout: long, Retry: heard})
		require.NoError(t, err)
		sem, locks := semaphore.New(n, name, stormCapacity, nil), qlock.New(n, &qlock.Config{Lease: long})
		pool := allocator.New(n, name, allocator.PoolConfig[string]{})
		if i == 0 {
			_, err = pool.Add(ctx, []string{"r1", "r2", "r3"}, nil)
			require.NoError(t, err)
		}
		t.Cleanup(func() { require.NoError(t, n.Close(bg)) })
		for range stormWorkers {
			all.Go(func() { a.storm(version, func(r *rand.Rand) error { return a.permit(ctx, version, sem, r) }) })
			all.Go(func() { a.storm(version, func(r *rand.Rand) error { return a.lock(ctx, version, locks, r) }) })
			all.Go(func() { a.storm(version, func(r *rand.Rand) error { return a.resource(ctx, version, pool, r) }) })
		}
		if i == stormProcesses-1 {
			all.Wait()
			reader, err := inspect.New(redis, inspect.Config{Namespace: ns})
			require.NoError(t, err)
			a.over(reader, allocator.NewOperator(n))
		}
	}
	for release, served := range a.served {
		require.Positive(t, served.Load(), release)
	}
	require.Positive(t, a.refused.Load())
	for _, script := range []string{"semaphore_acquire", "semaphore_release", "lock_acquire", "lock_release", "pool_acquire", "pool_release"} {
		require.Positive(t, older.count(script), script)
	}
}

// storm has a worker claim again and again.
func (a *tally) storm(version string, round func(r *rand.Rand) error) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 0)) // of the scheduling no seed is left anyway
	for range stormRounds {
		err := round(r)
		switch {
		case errors.Is(err, berth.ErrNotAcquired):
			a.refused.Add(1)
		case err != nil:
			a.Errorf("%s: %v", version, err)
			return
		}
	}
}

// patienceOf is how long a claim waits: most as long as it takes, some not at all or
// for an instant.
func patienceOf(r *rand.Rand) (try bool, most time.Duration) {
	switch r.IntN(10) {
	case 0:
		return true, 0
	case 1:
		return false, 2 * time.Millisecond
	}
	return false, 0
}

// inside adds to what is held, and fails if that is more than there may be. The
// returned function takes it away again.
func (a *tally) inside(of *atomic.Int64, weight, most int64, what string) func() {
	if now := of.Add(weight); now > most {
		a.Errorf("%s: %d are held, of %d", what, now, most)
	}
	return func() { of.Add(-weight) }
}

func (a *tally) permit(ctx context.Context, version string, sem *semaphore.Semaphore, r *rand.Rand) error {
	try, most := patienceOf(r)
	opts, begun := &semaphore.AcquireOptions{Weight: 1 + r.IntN(2), MaxWait: most}, time.Since(a.begun)
	acquire := sem.Acquire
	if try {
		opts.MaxWait, acquire = 0, sem.TryAcquire
	}
	h, err := acquire(ctx, opts)
	if err != nil {
		return err
	}
	out := a.inside(&a.held, int64(opts.Weight), stormCapacity, "permits")
	a.note("semaphore", version, h.ID(), h.Fence(), begun)
	out()
	return h.Release(ctx)
}

func (a *tally) lock(ctx context.Context, version string, locks *qlock.Locks, r *rand.Rand) error {
	try, most := patienceOf(r)
	opts, begun := &qlock.LockOptions{MaxWait: most}, time.Since(a.begun)
	acquire := locks.Lock
	if try {
		opts.MaxWait, acquire = 0, locks.TryLock
	}
	h, err := acquire(ctx, name, opts)
	if err != nil {
		return err
	}
	out := a.inside(&a.locked, 1, 1, "the lock")
	if last := a.lastFence.Swap(h.Fence()); last >= h.Fence() {
		a.Errorf("the lock's fence %d came after %d", h.Fence(), last)
	}
	a.note("lock", version, h.ID(), h.Fence(), begun)
	out()
	return h.Release(ctx)
}

func (a *tally) resource(ctx context.Context, version string, pool *allocator.Pool[string], r *rand.Rand) error {
	try, most := patienceOf(r)
	opts, begun := &allocator.AllocateOptions{MaxWait: most}, time.Since(a.begun)
	acquire := pool.Allocate
	if try {
		opts.MaxWait, acquire = 0, pool.TryAllocate
	}
	h, err := acquire(ctx, opts)
	if err != nil {
		return err
	}
	out := a.inside(a.leased[h.Resource()], 1, 1, h.Resource())
	a.note("pool", version, h.ID(), h.Fence(), begun)
	out()
	return h.Release(ctx)
}

// over looks at what is left, and at the order.
func (a *tally) over(reader *inspect.Reader, pools *allocator.Operator) {
	for _, kind := range []keyspace.Kind{keyspace.Sem, keyspace.Lock, keyspace.Pool} {
		testkit.Patient{T: a.T}.Await("what was given up has left", func() bool { // its caller did not wait for that
			n, err := reader.Name(bg, kind, name)
			require.NoError(a, err)
			return n.Held+n.Holders+n.Waiting == 0
		})
	}
	seen, err := pools.Inspect(bg, name)
	require.NoError(a, err)
	require.Empty(a, seen.Problems)
	require.Equal(a, allocator.Inspection{Resources: 3, Free: 3, Bindings: seen.Bindings}, seen)
	for primitive, turns := range a.turns {
		require.Greater(a, len(turns), stormProcesses*stormWorkers*stormRounds/2, primitive)
		require.Empty(a, passed(turns), primitive)
		slices.SortFunc(turns, func(x, y turn) int { return int(x.fence - y.fence) })
		for n := 1; n < len(turns); n++ {
			require.Less(a, turns[n-1].fence, turns[n].fence, "%s: no fence is given twice", primitive)
		}
	}
}

// passed finds a claim that stood in line before another one was asked for, and was
// granted after it.
func passed(turns []turn) string {
	for _, first := range turns {
		for _, later := range turns {
			if first.queued > 0 && first.queued < later.begun && later.fence < first.fence {
				return fmt.Sprintf("%+v was passed by %+v", first, later)
			}
		}
	}
	return ""
}
