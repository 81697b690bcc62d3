package engine

import (
	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/observe"
)

// Loosen gives a hold's claim back to the server, in the background, and leaves the
// handle without a lease: nothing ends it but Release, which sends nothing then, and
// the engine's end. It is for what is only told to a claim, and kept from nobody.
func (h *Hold) Loosen() {
	c := h.c
	c.mu.Lock()
	c.loose = true
	c.mu.Unlock()
	h.e.beats.Update(&c.lease, func(spec *heartbeat.Spec) {
		spec.Renews, spec.Deadline, spec.Limit, spec.Warn = false, 0, 0, 0
	})
	h.e.beats.Remove(&c.lease)
	if h.e.begin() {
		h.e.spawn(func() { h.e.cleanUp(c) })
		h.e.work.Done()
	}
}

// Loose says whether the hold was loosened.
func (h *Hold) Loose() bool { return h.c.Loose() }

// Loose says whether only the handle is left of the claim's hold.
func (c *Claim) Loose() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loose
}

// settle ends the handle of a hold that was loosened, and reports false for any
// other.
func (h *Hold) settle() bool {
	loose := h.Loose()
	h.mu.Lock()
	ends := loose && h.c.end(berth.ErrReleased)
	h.parted = h.parted || ends
	h.mu.Unlock()
	if ends {
		h.e.forget(h.c)
		h.e.holdEvent(observe.Released, h, nil)
	}
	return loose
}
