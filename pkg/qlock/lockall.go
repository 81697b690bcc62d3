package qlock

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
)

// LockAll locks all the names or none, in an order that is the same for every
// caller, so that two that share names never wait for each other. Names that
// repeat count once. What it holds already is renewed while it waits for the rest,
// NoRenew or not, and if it is lost all the same, the wait ends; a fixed lease starts
// once all are held. MaxWait and MaxAttempts
// bound all waits together. All locks have one owner: that of ctx, or one made for
// them.
//
// Its errors are those of Lock, for the name that was not acquired. On ctx's end
// it returns at once, and what it had is released in the background.
func (c *Client) LockAll(ctx context.Context, names []string, opts *LockOptions) (*LockSet, error) {
	return c.lockAll(ctx, names, opts, true)
}

// TryLockAll is LockAll that never waits.
func (c *Client) TryLockAll(ctx context.Context, names []string, opts *LockOptions) (*LockSet, error) {
	return c.lockAll(ctx, names, opts, false)
}

// DoAll is Do with LockAll in the place of Lock.
func (c *Client) DoAll(ctx context.Context, names []string, opts *LockOptions, f func(context.Context) error) error {
	if err := settings.Function(f != nil); err != nil {
		return err
	}
	set, err := c.LockAll(ctx, names, opts)
	if err != nil {
		return err
	}
	return set.do(ctx, f)
}

// TryDoAll is Do with TryLockAll in the place of Lock.
func (c *Client) TryDoAll(ctx context.Context, names []string, opts *LockOptions, f func(context.Context) error) error {
	if err := settings.Function(f != nil); err != nil {
		return err
	}
	set, err := c.TryLockAll(ctx, names, opts)
	if err != nil {
		return err
	}
	return set.do(ctx, f)
}

// order is the names, each once, in the order in which everybody locks them.
func order(names []string) []string {
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

func (c *Client) lockAll(ctx context.Context, names []string, opts *LockOptions, wait bool) (*LockSet, error) {
	if len(names) == 0 {
		return nil, berth.Invalid("names", "there is none")
	}
	names = order(names)
	r, err := c.request(ctx, opts, wait, names...)
	if err != nil {
		return nil, err
	}
	if r.owner == "" {
		r.owner = c.node.Load().Engine.ClaimID()
	}
	locks, err := r.lockAll(ctx, names)
	if err != nil {
		drop(ctx, locks)
		return nil, err
	}
	return newLockSet(ctx, locks, c.clock.Now()-r.start), nil
}

// lockAll locks one name after the other, and returns what it holds, beside an error too.
func (r *request) lockAll(ctx context.Context, names []string) (locks []*Lock, err error) {
	keeping, stop := context.WithCancel(context.Background())
	var keepers sync.WaitGroup
	defer keepers.Wait()
	defer stop()
	// What has ended makes the wait for the rest pointless.
	whole, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, name := range names {
		lock, err := r.lock(whole, name, r.c.clock.Now())
		for _, held := range locks {
			if ended := held.Err(); err != nil && ended != nil && ctx.Err() == nil {
				return locks, r.lostMeanwhile(ctx, held, ended)
			}
		}
		if err != nil {
			return locks, err
		}
		locks = append(locks, lock)
		defer context.AfterFunc(lock.hold.Context(), cancel)()
		if r.fixed() {
			keepers.Go(func() { r.keep(keeping, lock) })
		}
	}
	stop()
	keepers.Wait()
	for _, lock := range locks {
		err := lock.Err()
		if err == nil && r.fixed() {
			err = lock.Renew(ctx) // fixed leases run from here on
		}
		if err != nil {
			return locks, r.lostMeanwhile(ctx, lock, err)
		}
	}
	return locks, nil
}

// fixed says whether the locks have leases that end and that nobody renews.
func (r *request) fixed() bool { return r.NoRenew && r.Lease != berth.Forever }

// keep renews a lock with a fixed lease while the rest is waited for; others renew
// themselves.
func (r *request) keep(ctx context.Context, lock *Lock) {
	ticker := time.NewTicker(min(r.Lease, r.c.cfg.Lease) / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = lock.Renew(ctx) // what it does not keep, lockAll finds lost
		case <-ctx.Done():
			return
		}
	}
}

// lostMeanwhile is the error of a LockAll that lost a lock while it waited for
// another.
func (r *request) lostMeanwhile(ctx context.Context, lock *Lock, err error) error {
	refusal := &berth.AcquireError{
		Name: lock.Name(), Claim: lock.ID(), Reason: berth.ReasonFailed, Waited: r.c.clock.Now() - r.start, Cause: err,
	}
	if ctx.Err() != nil {
		refusal.Reason, refusal.Cause = endOf(ctx)
	}
	return refusal
}

// drop releases what was locked, the last first; on ctx's end in the background.
func drop(ctx context.Context, locks []*Lock) {
	for _, lock := range slices.Backward(locks) {
		if ctx.Err() != nil {
			lock.hold.Drop()
		} else {
			_ = lock.Release(ctx) // it ends with its lease otherwise; the observer is told
		}
	}
}
