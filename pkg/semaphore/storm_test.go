package semaphore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/model"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/amount"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// storm is many claims of several nodes at once.
type storm struct {
	nodes, workers, claims int           // workers of each node, claims of each worker
	patience               time.Duration // a wait ends by itself within it
	hold                   time.Duration // a permit is held up to so long
	calm                   time.Duration // so long after the last of them nothing is held, by no ghost either
	lasting                bool          // only by the end of the linger
	cfg                    node.Config
	lag                    time.Duration // of each reply, at most
	fate                   func(c link.Command) link.Fate
	opts                   func(r *rand.Rand) semaphore.AcquireOptions
	cancels                bool // some waits end by their callers, and all of them are cleaned up
}

// storming is a storm on its way.
type storming struct {
	storm
	w        *world
	capacity int
	mu       sync.Mutex
	inside   map[*semaphore.Permit]bool // guarded by mu
	granted  int                        // guarded by mu
	refused  int                        // guarded by mu
}

func (s *storming) once(n *proc, r *rand.Rand) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	time.AfterFunc(time.Duration(r.Int64N(int64(s.patience))), cancel)
	var opts semaphore.AcquireOptions
	if s.opts != nil {
		opts = s.opts(r)
	}
	p, err := n.gpu(s.capacity).Acquire(ctx, &opts)
	if err != nil {
		s.mu.Lock()
		s.refused++
		s.mu.Unlock()
		return
	}
	s.enter(p)
	select {
	case <-p.Done():
	case <-time.After(time.Duration(r.Int64N(int64(s.hold) + 1))):
	}
	s.mu.Lock()
	delete(s.inside, p)
	s.mu.Unlock()
	_ = p.Release(context.Background())
}

// enter fails the test if more is held than there is.
func (s *storming) enter(p *semaphore.Permit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inside[p] = true
	s.granted++
	weight := 0
	for other := range s.inside {
		if other.Err() == nil {
			weight += other.Weight()
		}
	}
	if weight > s.capacity {
		s.w.T.Errorf("%d are held of %d", weight, s.capacity)
	}
}

// capacities are those of a name that is thin now and then, and of one that is always fat.
var capacities = []int{1, 3}

// Cancels race acquires and releases; a network loses and delays what it carries; what a broken connection carried
// still reaches the server, after everything else.
func TestAStormNeverOverfillsAndLeavesNoGhost(t *testing.T) {
	cancels := storm{nodes: 2, workers: 8, claims: 3, patience: 60 * ms, hold: 10 * ms, calm: 100 * ms, cancels: true}
	delayed := cancels
	delayed.lag = 8 * ms
	bad := storm{nodes: 3, workers: 4, claims: 3, patience: 3 * time.Second, hold: 400 * ms, calm: 10 * time.Second}
	bad.lasting, bad.lag, bad.cfg = true, 5*ms, node.Config{Lease: 600 * ms, CallTimeout: 300 * ms}
	bad.fate = func(c link.Command) link.Fate {
		if c.Name == "HELLO" || c.Name == "CLIENT" {
			return link.Pass
		}
		switch rand.IntN(40) {
		case 0:
			return link.LoseReply
		case 1:
			return link.LoseRequest
		case 2:
			return link.Slow(time.Duration(rand.IntN(800)) * ms)
		}
		return link.Pass
	}
	kinds := bad
	kinds.opts = func(r *rand.Rand) semaphore.AcquireOptions {
		return []semaphore.AcquireOptions{
			{Weight: 2},
			{Priority: r.IntN(3)},
			{NoRenew: true, Lease: 200 * ms},
			{NoRenew: true, Lease: 2 * time.Second},
			{MaxHold: 150 * ms},
			{Lease: 100 * ms},
			{Lease: 2 * time.Second},
			{MaxWait: 100 * ms},
			{Lease: berth.Forever},
		}[r.IntN(9)]
	}
	late := storm{nodes: 2, workers: 4, claims: 4, patience: time.Second, hold: 50 * ms, calm: time.Second}
	late.cfg, late.fate = node.Config{Lease: 600 * ms}, func(c link.Command) link.Fate {
		for _, verb := range []string{"acquire", "release", "renew", "restore"} {
			if asks(c, verb) && rand.IntN(6) == 0 {
				return link.Late
			}
		}
		return link.Pass
	}
	for name, s := range map[string]storm{
		"cancels at once": cancels, "cancels with delays": delayed, "late requests": late, "a bad network": bad,
		"a bad network, all kinds of permits": kinds,
	} {
		for _, capacity := range capacities {
			inWorldOf(t, fmt.Sprint(name, " ", capacity), func(_ *testing.T, w *world) {
				(&storming{storm: s, w: w, capacity: capacity, inside: make(map[*semaphore.Permit]bool)}).blow()
			})
		}
	}
}

// blow runs the workers of the nodes until all have asked as often as they should, and looks at what is left.
func (s *storming) blow() {
	w := s.w
	var nodes []*proc
	var wg sync.WaitGroup
	for range s.nodes {
		n := w.node(s.cfg)
		nodes = append(nodes, n)
		n.connect()
		if s.lag > 0 {
			n.Delay(func() time.Duration { return rand.N(s.lag) })
		}
		n.OnCommand(s.fate)
	}
	for _, n := range nodes {
		for range s.workers {
			r := rand.New(rand.NewPCG(rand.Uint64(), 0))
			wg.Go(func() {
				for range s.claims {
					s.once(n, r)
				}
			})
		}
	}
	wg.Wait()
	require.Positive(w.T, s.granted)
	for _, n := range nodes {
		n.OnCommand(nil)
		n.Delay(nil)
		require.NoError(w.T, testkit.Second(n.DeliverLate()))
	}
	w.Advance(s.calm)
	if !s.lasting {
		require.Equal(w.T, counts{Capacity: s.capacity}, w.stats(), "no ghost, not even for a lease")
	}
	if s.cancels {
		require.Positive(w.T, s.refused)
		for _, n := range nodes {
			require.NotContains(w.T, n.Kinds(), observe.CleanupFailed)
		}
	}
	require.Zero(w.T, w.Field("waiting"), "nobody waits any more")
	w.Advance(2 * time.Minute) // every tombstone and every lease has ended
	w.stats()                  // sweeps
	w.RequireIdle()
}

func TestTheSemaphoreKeepsTheLawsWhateverHappens(t *testing.T) {
	require.NoError(t, amount.Histories(10))
	inWorld(t, func(t *testing.T, w *world) {
		runs := 0
		// Hidden in a TB, because rapid asks a T for what bubbles do not have.
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) {
			runs++
			model.Run(rt, model.World{
				Redis: w.Redis, Namespace: "berth", Name: fmt.Sprint(gpu, runs), Lease: lease, Exact: true,
				Connect: func() (rueidis.Client, *link.Link) {
					l := link.New(testkit.Script)
					redis, err := w.Server.Client(link.RarePings, l.Wrap)
					require.NoError(t, err)
					return redis, l
				},
				Advance: w.Advance,
				Settle:  func(func() bool) { w.Advance(0) },
			})
		})
	})
}
