package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// lockServant is a child that uses locks. Beside the orders that a child with
// permits knows it takes
//
//	extend    by order.By
//	fence     what the handle that was taken before says
//	swarm     start the swarm
//	node      the child's node
//	pairs     lock all of order.Names, so many times
//	sections  lock again and again, and write each section to the file order.Path
//	die       end as by kill -9, in the midst of the next section
//	enough    end the sections
type lockServant struct {
	*locker

	mu    sync.Mutex
	locks map[string]*qlock.Lock // guarded by mu, by name

	dies, done atomic.Bool
}

func newLockServant(n *node.Node, lease time.Duration) *lockServant {
	return &lockServant{locker: &locker{n, qlock.New(n, &qlock.Config{Lease: lease})}, locks: map[string]*qlock.Lock{}}
}

func (c *lockServant) carryOut(ctx context.Context, o order, a *answer) error {
	c.mu.Lock()
	l := c.locks[o.Name]
	c.mu.Unlock()
	switch o.Do {
	case "acquire":
		return c.acquire(ctx, o, a)
	case "crowd":
		for range o.Count {
			go func() { _, _ = c.Lock(ctx, o.Name, nil) }()
		}
		return nil
	case "err":
		return l.Err()
	case "context":
		if l.Context().Err() == nil {
			return nil
		}
		return context.Cause(l.Context())
	case "renew":
		return l.Renew(ctx)
	case "extend":
		return l.Extend(ctx, o.By)
	case "release":
		return l.Release(ctx)
	case "swarm":
		return c.Swarm().Start(ctx)
	case "node":
		a.Node = c.ID()
		return nil
	case "pairs":
		return c.pairs(ctx, o)
	case "sections":
		return c.sections(ctx, o)
	case "die":
		c.dies.Store(true)
		return nil
	case "enough":
		c.done.Store(true)
		return nil
	}
	return fmt.Errorf("no such order: %q", o.Do)
}

func (c *lockServant) acquire(ctx context.Context, o order, a *answer) error {
	l, err := c.Lock(ctx, o.Name, &qlock.LockOptions{Lease: o.Lease, NoRenew: o.NoRenew})
	if err != nil {
		return err
	}
	a.Claim, a.Fence, a.Node = l.ID(), l.Fence(), c.ID()
	c.mu.Lock()
	c.locks[o.Name] = l
	c.mu.Unlock()
	return nil
}

// pairs locks all of the names, in the order given and turned round. A round in
// which a hold ended by its lease does not count: the lease may have been too short
// for the machine.
func (c *lockServant) pairs(ctx context.Context, o order) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	names := slices.Clone(o.Names)
	for done := 0; done < o.Count; slices.Reverse(names) {
		set, err := c.LockAll(ctx, names, nil)
		if err == nil {
			err = set.Release(ctx)
		}
		switch {
		case err == nil:
			done++
		case !errors.Is(err, berth.ErrNotHeld):
			return err
		}
	}
	return nil
}

// spawnLocker starts a child with locks and a part in a swarm.
func (w *world) spawnLocker(s spec) *child {
	w.Helper()
	s.Locks = true
	return w.spawnAs(s)
}

// acquireFixed has the child lock the door without renewing it.
func (c *child) acquireFixed(o order) answer {
	c.w.Helper()
	o.Do, o.Name, o.NoRenew = "acquire", door, true
	a := c.ask(o)
	require.Empty(c.w, a.Err)
	return a
}
