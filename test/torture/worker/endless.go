package main

import (
	"context"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/test/torture/history"
)

// handsOfEndless take what is held without an end. There are more than places, so that some wait.
const handsOfEndless = 4

// withoutEnd has a crew take what is held without an end, while that is ordered. Its node lives until the drain:
// nobody but they can end what comes back after its release. It calls idle when it has nothing under way any more.
func (w *worker) withoutEnd(idle func()) {
	select {
	case <-w.asked:
	case <-w.draining:
		idle()
		return
	}
	c := w.open("endless", false) // a flush would end what its own release is to end
	var busy sync.WaitGroup
	for n := range handsOfEndless {
		h := newHand(w, uint64(10_000+n))
		busy.Go(func() { h.withoutEnd(c) })
	}
	busy.Wait()
	idle()
	c.close()
	c.list()
}

// withoutEnd takes and gives back, while that is ordered.
func (h *hand) withoutEnd(c *crew) {
	for pause(h.between(0, 5), h.w.draining) {
		if !h.w.endless.Load() {
			continue
		}
		p := plan{
			primitive: []string{sem, lock}[h.IntN(2)], name: h.w.job.Endless[h.IntN(len(h.w.job.Endless))],
			capacity: 1, weight: 1, lease: berth.Forever, leaves: 500 * time.Millisecond,
		}
		held := h.acquire(context.Background(), c, p)
		if held == nil {
			continue
		}
		for end := time.Now().Add(h.between(0, 20)); h.alive(held) && time.Now().Before(end); {
			pause(2*time.Millisecond, h.w.draining)
		}
		// What has ended here may stand there all the same.
		kind := history.Unknown
		for kind == history.Unknown && !h.w.drains() {
			kind = h.call(held, history.Release, held.Release)
		}
		if kind == history.Unknown {
			c.excuse(held.ID(), "not known to be released")
		}
	}
}
