package semaphore

import (
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/observe"
)

// stored compares the stored capacity with the claim's, and reports another one
// once.
func (c *Client) stored(claim *engine.Claim, capacity int) {
	if capacity == claim.Capacity {
		return
	}
	if before, seen := c.differs.Swap(claim.Name, capacity); seen && before == capacity {
		return
	}
	c.tell.Send(observe.Event{
		Kind: observe.CapacityDiffers, Name: claim.Name, Claim: claim.ID, Owner: claim.Record.Owner,
		Capacity: capacity, Count: claim.Capacity, Attrs: claim.Attrs,
	})
}
