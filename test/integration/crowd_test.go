package integration

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// grant is what the server's record says of a permit while it is held.
type grant struct{ ticket, fence int64 }

func TestManyGoroutinesOnCapacityTen(t *testing.T) {
	w := shared(t)
	const clients, many, capacity = 3, 300, 10
	// All at once may take long, and a call that counts as unanswered leaves
	// a tombstone; the state must still be there when all has been checked.
	cfg := node.Config{Lease: time.Hour, CallTimeout: patience, Linger: time.Hour}
	sems := make([]*semaphore.Semaphore, clients)
	for i := range sems {
		sems[i] = w.sem(w.node(cfg), "gpu", capacity)
	}
	start := time.Now()
	inside, grants := w.crowd(sems, many, capacity)
	t.Logf("%d grants in %v, at most %d inside", len(grants), time.Since(start).Round(time.Millisecond), inside.most)

	inside.check(w)
	require.Equal(t, capacity, inside.most, "the capacity was never used")
	require.Len(t, grants, many, "some were lost")
	// Grants without a wait, in one millisecond, have one ticket.
	slices.SortFunc(grants, func(a, b grant) int {
		return cmp.Or(cmp.Compare(a.ticket, b.ticket), cmp.Compare(a.fence, b.fence))
	})
	for i := 1; i < many; i++ {
		require.Less(t, grants[i-1].fence, grants[i].fence, "a later ticket has a lower fence")
	}
	w.idle("gpu")
	require.LessOrEqual(t, len(w.keys()), 2, "only the state and what keeps its line may be left")
}

// crowd has many goroutines take a permit each, on the semaphores in turn.
func (w *world) crowd(sems []*semaphore.Semaphore, many, capacity int) (*live, []grant) {
	w.Helper()
	inside := newLive(capacity)
	var mu sync.Mutex
	var grants []grant
	var entries atomic.Int64
	full := make(chan struct{}) // closed when as many as may are inside
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			p, err := sems[i%len(sems)].Acquire(w.Within(patience), nil)
			if err != nil {
				w.Errorf("acquire: %v", err)
				return
			}
			inside.enter(p)
			if entries.Add(1) == int64(capacity) {
				close(full)
			}
			w.Signalled("the capacity is used", full)
			g := w.granted(p)
			mu.Lock()
			grants = append(grants, g)
			mu.Unlock()
			inside.leave(p)
			if err := p.Release(w.Within(patience)); err != nil {
				w.Errorf("release: %v", err)
			}
		})
	}
	all.Wait()
	return inside, grants
}

// granted reads the record of a permit that is held.
func (w *world) granted(p *semaphore.Permit) grant {
	key := w.stateKey(p.Name())
	text, err := w.admin.Do(w.Within(patience), w.admin.B().Hget().Key(key).Field("c:"+p.ID()).Build()).ToString()
	if err != nil {
		w.Errorf("the record of a held permit: %v", err)
		return grant{}
	}
	r, err := state.ParseRecord(text)
	if err != nil || r.Fence != p.Fence() {
		w.Errorf("the record says fence %d, the permit %d: %v", r.Fence, p.Fence(), err)
	}
	return grant{r.Ticket, r.Fence}
}

func TestNothingIsLeftAfterLinger(t *testing.T) {
	w := shared(t)
	cfg := node.Config{Linger: 200 * time.Millisecond, Lease: safe}
	s := w.sem(w.node(cfg), "gpu", 1)
	p := w.take(s, nil)
	q := w.queue(s, nil, 1)
	require.Len(t, w.keys(), 2)
	require.NoError(t, p.Release(w.Within(patience)))
	require.NoError(t, q.Wait(w).Release(w.Within(patience)))
	w.idle("gpu")
	w.Await("the last key has expired", func() bool { return len(w.keys()) == 0 })
}
