package integration

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/semaphore"
)

// Close in the middle of everything: holds are given back, waits end, and what
// was on its way leaves nothing. Others go on at once.
func TestCloseInMidTraffic(t *testing.T) {
	b := shared(t)
	const holders, waiters, many = 20, 200, 100
	cfg := semaphore.Config{Lease: time.Minute}
	closing, staying := b.client(cfg), b.client(cfg)
	s, other := b.sem(closing, "gpu", holders), b.sem(staying, "gpu", holders)
	var permits []*semaphore.Permit
	for range holders {
		permits = append(permits, b.take(s, nil))
	}
	var waits []*taking
	for range waiters {
		waits = append(waits, b.begin(s, nil))
	}
	b.await("all wait", func() bool { return b.waiting("gpu") == waiters })
	w := b.queue(other, nil, waiters+1)
	var all sync.WaitGroup
	for range many { // on their way, or not begun
		all.Go(func() {
			if _, err := s.Acquire(b.within(patience), nil); err == nil {
				b.Error("granted behind others, or by a closed client")
			}
		})
	}
	start := time.Now()
	require.NoError(t, closing.Close(b.within(patience)))
	took := time.Since(start)
	all.Wait()
	for _, p := range permits {
		require.ErrorIs(t, p.Err(), semaphore.ErrReleased)
	}
	for _, w := range waits {
		b.signalled("the waits to end", w.done)
		require.ErrorIs(t, w.err, semaphore.ErrClosed)
		require.ErrorIs(t, w.err, semaphore.ErrNotAcquired)
	}
	v := b.whole("gpu")
	for claim, r := range v.records {
		require.Equal(t, staying.Node(), r.Node, "%s was left", claim)
	}
	t.Logf("closed with %d holds and %d waits within %v", holders, waiters, took.Round(time.Millisecond))
	require.NoError(t, w.got(b).Release(b.within(patience)))
	require.NoError(t, closing.Close(b.within(patience)))
	b.idle("gpu")
}
