package qlock

import (
	"context"
	"time"
)

// ForceRelease releases a lock, whoever holds it, with all its entries: the
// next in line gets it, and the holder's handles end with ErrReleased once it
// has heard of it; until then two may be inside. It returns ErrNotHeld if the
// lock is free.
func (c *Client) ForceRelease(ctx context.Context, name string) error { return errSketch }

// ForceReleaseAll does so with every lock of the namespace and returns how
// many locks that were, also beside an error.
func (c *Client) ForceReleaseAll(ctx context.Context) (int, error) { return 0, errSketch }

// ForceReleaseNode does so with every hold of the node, and removes its waiting
// claims. It returns how many claims that were, also beside an error.
func (c *Client) ForceReleaseNode(ctx context.Context, node string) (int, error) {
	return 0, errSketch
}

// ForceExtend moves the deadlines of a lock's entries by d, whoever holds it.
// It never shortens. It returns ErrNotHeld if the lock is free.
func (c *Client) ForceExtend(ctx context.Context, name string, d time.Duration) error {
	return errSketch
}

// SweepWaiters drops the waiting claims of the namespace whose node is not
// heard of any more, and returns how many that were, also beside an error.
// They drop out by themselves; this is for a tidy listing.
func (c *Client) SweepWaiters(ctx context.Context) (int, error) { return 0, errSketch }
