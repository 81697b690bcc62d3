package semaphore

import (
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/observe"
)

// event sends what no claim of this client is behind.
func (c *Client) event(ev observe.Event) {
	if c.tell != nil {
		c.tell(ev)
	}
}

// repeated reports a call that is about to be repeated.
func (c *Client) repeated(script string, attempt int, err error) {
	c.event(observe.Event{Kind: observe.Repeated, Detail: script, Count: attempt, Err: err})
}

// swept reports what a script dropped.
func (c *Client) swept(name string, dropped int) {
	if dropped > 0 {
		c.event(observe.Event{Kind: observe.Swept, Name: name, Count: dropped})
	}
}

// stored compares the stored capacity with the claim's, and reports another one
// once.
func (c *Client) stored(claim *engine.Claim, capacity int) {
	if capacity == claim.Capacity {
		return
	}
	if before, seen := c.differs.Swap(claim.Name, capacity); seen && before == capacity {
		return
	}
	c.event(observe.Event{
		Kind: observe.CapacityDiffers, Name: claim.Name, Claim: claim.ID, Owner: claim.Record.Owner,
		Capacity: capacity, Count: claim.Capacity, Attrs: claim.Attrs,
	})
}
