package integration

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Close in the middle of everything: holds are given back, waits end, and what
// was on its way leaves nothing. Others go on at once.
func TestCloseInMidTraffic(t *testing.T) {
	w := shared(t)
	const holders, waiters, many = 20, 200, 100
	cfg := node.Config{Lease: time.Minute}
	closing, staying := w.node(cfg), w.node(cfg)
	s, other := w.sem(closing, "gpu", holders), w.sem(staying, "gpu", holders)
	var permits []*semaphore.Permit
	for range holders {
		permits = append(permits, w.take(s, nil))
	}
	var waits []*taking
	for range waiters {
		waits = append(waits, w.begin(s, nil))
	}
	w.Await("all wait", func() bool { return w.waiting("gpu") == waiters })
	q := w.queue(other, nil, waiters+1)
	var all sync.WaitGroup
	for range many { // on their way, or not begun
		all.Go(func() {
			if _, err := s.Acquire(w.Within(patience), nil); err == nil {
				w.Error("granted behind others, or by a closed node")
			}
		})
	}
	start := time.Now()
	require.NoError(t, closing.Close(w.Within(patience)))
	took := time.Since(start)
	all.Wait()
	for _, p := range permits {
		require.ErrorIs(t, p.Err(), berth.ErrReleased)
	}
	for _, q := range waits {
		w.Signalled("the waits to end", q.Done)
		require.ErrorIs(t, q.Err, berth.ErrClosed)
		require.ErrorIs(t, q.Err, berth.ErrNotAcquired)
	}
	v := w.whole("gpu")
	for claim, r := range v.records {
		require.Equal(t, staying.ID(), r.Node, "%s was left", claim)
	}
	t.Logf("closed with %d holds and %d waits within %v", holders, waiters, took.Round(time.Millisecond))
	require.NoError(t, q.Wait(w).Release(w.Within(patience)))
	require.NoError(t, closing.Close(w.Within(patience)))
	w.idle("gpu")
}
