package semaphore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// storm is many claims of several nodes at once.
type storm struct {
	w        *world
	capacity int
	claims   int           // of each worker
	workers  int           // of each node
	patience time.Duration // a wait ends by itself within it, 0 for never
	hold     time.Duration // a permit is held up to so long
	opts     func(r *rand.Rand) semaphore.AcquireOptions

	mu      sync.Mutex
	inside  map[*semaphore.Permit]bool // guarded by mu
	granted int                        // guarded by mu
	refused int                        // guarded by mu
}

// blow runs the workers of the nodes until all have asked as often as they should.
func (s *storm) blow(nodes ...*proc) {
	s.inside = make(map[*semaphore.Permit]bool)
	var wg sync.WaitGroup
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
}

func (s *storm) once(n *proc, r *rand.Rand) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if s.patience > 0 {
		time.AfterFunc(time.Duration(r.Int64N(int64(s.patience))), cancel)
	}
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
func (s *storm) enter(p *semaphore.Permit) {
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

// calm waits until every tombstone and every lease has ended, and fails if
// anything is left.
func (s *storm) calm() {
	s.w.T.Helper()
	synctest.Wait()
	require.Zero(s.w.T, s.w.Field("waiting"), "nobody waits any more")
	s.w.Advance(2 * time.Minute)
	s.w.stats() // sweeps
	s.w.RequireIdle()
}

// capacities are those of a name that is thin now and then, and of one that is always fat.
var capacities = []int{1, 3}

func TestCancelsThatRaceAcquiresAndReleasesLeaveNoGhost(t *testing.T) {
	for name, lag := range map[string]time.Duration{"at once": 0, "with delays": 8 * ms} {
		for _, capacity := range capacities {
			t.Run(fmt.Sprint(name, " ", capacity), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					nodes := []*proc{w.node(), w.node()}
					for _, n := range nodes {
						n.connect()
						if lag > 0 {
							n.Delay(func() time.Duration { return rand.N(lag) })
						}
					}
					s := &storm{w: w, capacity: capacity, workers: 8, claims: 3, patience: 60 * ms, hold: 10 * ms}
					s.blow(nodes...)
					require.Positive(t, s.granted)
					require.Positive(t, s.refused)
					w.Advance(100 * ms)
					require.Equal(t, counts{Capacity: capacity}, w.stats(), "no ghost, not even for a lease")
					s.calm()
					for _, n := range nodes {
						require.NotContains(t, n.Kinds(), observe.CleanupFailed)
					}
				})
			})
		}
	}
}

func TestAStormOverABadNetworkNeverOverfills(t *testing.T) {
	for name, opts := range map[string]func(r *rand.Rand) semaphore.AcquireOptions{
		"renewing": nil,
		"of all kinds": func(r *rand.Rand) semaphore.AcquireOptions {
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
		},
	} {
		for _, capacity := range capacities {
			t.Run(fmt.Sprint(name, " ", capacity), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					var nodes []*proc
					for range 3 {
						n := w.node(node.Config{Lease: 600 * ms, CallTimeout: 300 * ms})
						n.connect()
						n.Delay(func() time.Duration { return rand.N(5 * ms) })
						n.OnCommand(func(c link.Command) link.Fate {
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
						})
						nodes = append(nodes, n)
					}
					s := &storm{w: w, capacity: capacity, workers: 4, claims: 3, patience: 3 * time.Second, hold: 400 * ms, opts: opts}
					s.blow(nodes...)
					for _, n := range nodes {
						n.OnCommand(nil)
						n.Delay(nil)
					}
					w.Advance(10 * time.Second)
					s.calm()
				})
			})
		}
	}
}

// Late requests: what a broken connection carried still reaches the server, after
// everything else.
func TestAStormOfLateAcquiresLeavesNoGhost(t *testing.T) {
	for _, capacity := range capacities {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var nodes []*proc
				for range 2 {
					n := w.node(node.Config{Lease: 600 * ms})
					n.connect()
					n.OnCommand(func(c link.Command) link.Fate {
						for _, verb := range []string{"acquire", "release", "renew", "restore"} {
							if asks(c, verb) && rand.IntN(6) == 0 {
								return link.Late
							}
						}
						return link.Pass
					})
					nodes = append(nodes, n)
				}
				s := &storm{w: w, capacity: capacity, workers: 4, claims: 4, patience: time.Second, hold: 50 * ms}
				s.blow(nodes...)
				for _, n := range nodes {
					n.OnCommand(nil)
					_, err := n.DeliverLate()
					require.NoError(t, err)
				}
				w.Advance(time.Second)
				require.Equal(t, counts{Capacity: capacity}, w.stats(), "no ghost, not even for a lease")
				s.calm()
			})
		})
	}
}

func TestManyClaimsOnOneNameKeepTheirOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := []*proc{w.node(), w.node()}
		s := &storm{w: w, capacity: 5, workers: 20, claims: 1, hold: 20 * ms}
		type grant struct{ ticket, fence int64 }
		var mu sync.Mutex
		var grants []grant
		s.inside = make(map[*semaphore.Permit]bool)
		var wg sync.WaitGroup
		for i := range 2 * s.workers {
			wg.Go(func() {
				p, err := nodes[i%2].gpu(s.capacity).Acquire(context.Background(), nil)
				if err != nil {
					t.Error(err)
					return
				}
				s.enter(p)
				mu.Lock()
				grants = append(grants, grant{p.Ticket(), p.Fence()})
				mu.Unlock()
				time.Sleep(s.hold)
				s.mu.Lock()
				delete(s.inside, p)
				s.mu.Unlock()
				if err := p.Release(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.Len(t, grants, 2*s.workers)
		for _, a := range grants {
			for _, b := range grants {
				if a.ticket < b.ticket {
					require.Less(t, a.fence, b.fence, "fences rise in the order of the tickets")
				}
			}
		}
		require.Equal(t, 8*20*ms, w.Now(), "40 in batches of 5")
		w.RequireIdle()
	})
}
