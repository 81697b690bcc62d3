package qlock

import (
	"context"
	"errors"
	"time"

	"github.com/rs/xid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// The calls of this file are for operators: they ask nobody who holds a lock.
// The holders' processes hear of it; until then two may be inside.

// ForceRelease ends a lock's hold with all its entries, whoever has it: the first
// in line gets it in the same step, and the handles end with berth.ErrReleased. It
// ends the hold that it finds when it is called, and no later one. It returns
// berth.ErrNotHeld if the lock is free, or that hold has ended by itself, berth.ErrInvalidConfig for a bad
// name, or the server's error.
func (c *Client) ForceRelease(ctx context.Context, name string) error {
	info, err := c.Info(ctx, name)
	if err != nil {
		return err
	}
	if !info.Held() {
		return berth.ErrNotHeld
	}
	return c.node.Load().forceRelease(ctx, name, info.Fence)
}

// ForceReleaseAll does so with every lock of the namespace that is held, and
// returns how many that were, also beside an error.
func (c *Client) ForceReleaseAll(ctx context.Context) (int, error) {
	count := 0
	var errs []error
	for info, err := range c.Locks(ctx) {
		if err == nil {
			err = c.node.Load().forceRelease(ctx, info.Name, info.Fence)
		}
		switch {
		case err == nil:
			count++
		case !errors.Is(err, berth.ErrNotHeld):
			errs = append(errs, err)
		}
	}
	return count, errors.Join(errs...)
}

// ForceReleaseNode ends everything that a node holds, detached or not, and removes
// what it has waiting. It returns how many claims that were, also beside an error.
func (c *Client) ForceReleaseNode(ctx context.Context, node string) (int, error) {
	if node == "" {
		return 0, berth.Invalid("node", "it is empty")
	}
	count := 0
	var errs []error
	end := func(name, claim string) {
		switch err := c.node.Load().ForceRelease(ctx, name, claim, node); {
		case err == nil:
			count++
		case !errors.Is(err, berth.ErrNotHeld):
			errs = append(errs, err)
		}
	}
	for name, err := range c.names(ctx) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, c.ofNode(ctx, name, node, end))
	}
	return count, errors.Join(errs...)
}

// ofNode calls end for every claim of a node on a name: those that wait first, so
// that none of them is granted what the holds leave.
func (c *Client) ofNode(ctx context.Context, name, node string, end func(name, claim string)) error {
	from := c.node.Load()
	for w, err := range from.Waiters(ctx, name) {
		if err != nil {
			return err
		}
		if w.Node == node {
			end(name, w.ID)
		}
	}
	for h, err := range from.Holders(ctx, name) {
		if err != nil {
			return err
		}
		if h.Node == node {
			end(name, h.ID)
		}
	}
	return nil
}

// ForceExtend moves the deadline of a lock's hold further off by so much, whoever
// has it: whole milliseconds, above 0. It never shortens, and MaxHold still bounds
// it. The holder's handle hears of it with its next heartbeat. It returns
// berth.ErrNotHeld if the lock is free, berth.ErrInvalidConfig, or the server's
// error.
func (c *Client) ForceExtend(ctx context.Context, name string, by time.Duration) error {
	if err := keyspace.CheckName(name); err != nil {
		return err
	}
	if err := checkExtension(by); err != nil {
		return err
	}
	info, err := c.Info(ctx, name)
	if err != nil {
		return err
	}
	if !info.Held() {
		return berth.ErrNotHeld
	}
	return c.node.Load().forceExtend(ctx, name, info.Fence, by)
}

// SweepWaiters drops what has expired from all locks of the namespace, and returns
// how much that was, also beside an error. It drops out by itself when somebody
// comes; this is for a tidy listing.
func (c *Client) SweepWaiters(ctx context.Context) (int, error) {
	count := 0
	var errs []error
	for name, err := range c.names(ctx) {
		if err == nil {
			var dropped int
			dropped, err = c.node.Load().SweepAll(ctx, name)
			count += dropped
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return count, errors.Join(errs...)
}

// forceRelease runs lock_force_hold for the hold with that fence: a repeated
// call must not end that of the next in line.
func (n *node) forceRelease(ctx context.Context, name string, fence int64) error {
	stays := line.Decimal(engine.Tombstone.Milliseconds())
	r, err := n.Run(ctx, n.forceHold, scriptkit.Bounded, name, line.Decimal(fence), stays)
	if err != nil {
		return err
	}
	switch r.Status() {
	case statusReleased:
	case statusNotHeld, statusOther:
		if r.Unanswered {
			return nil // an earlier attempt of this very call, or its holder
		}
		return berth.ErrNotHeld
	default:
		return line.Unexpected(name, &r)
	}
	more, entries := line.More(&r, 1), int(r.Int(3))
	if r.Err() != nil {
		return r.Err()
	}
	n.Tell.Send(observe.Event{Kind: observe.ForceReleased, Name: name, Count: entries, Detail: r.Status()})
	return n.SweepOn(ctx, name, more)
}

// forceExtend runs lock_extend for the hold with that fence.
func (n *node) forceExtend(ctx context.Context, name string, fence int64, by time.Duration) error {
	r, err := n.Run(ctx, n.extend, scriptkit.Bounded, name,
		line.Decimal(by.Milliseconds()), xid.New().String(), line.Decimal(fence))
	if err != nil {
		return err
	}
	switch r.Status() {
	case statusExtended:
	case statusNotHeld, statusOther:
		return berth.ErrNotHeld
	default:
		return line.Unexpected(name, &r)
	}
	left := line.Left(r.Int(1))
	if r.Err() != nil {
		return r.Err()
	}
	if left < 0 {
		left = berth.Forever
	}
	n.Tell.Send(observe.Event{Kind: observe.Extended, Name: name, Fence: fence, Lease: by, Left: left})
	return nil
}
