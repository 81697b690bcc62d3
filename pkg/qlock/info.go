package qlock

import (
	"context"
	"iter"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Holder is an entry that somebody holds.

// Waiter is a claim that waits in line.

// LockInfo is a lock at one moment. One that nobody holds has no entries.
type LockInfo struct {
	// Name is the lock's.
	Name string
	// Owner is whom the hold is for, "" if the lock is free: the claim's id
	// where no owner was given.
	Owner string
	// Fence is the number of the grant, 0 if the lock is free.
	Fence int64
	// Left is how long the lock stays held if nothing renews it: what is left of
	// the entry that lasts longest; berth.Forever for no end.
	Left time.Duration
	// Entries are the owner's holds, the outermost first.
	Entries []berth.Holder
	// Reentry is about the entries after the first.
	Reentry Reentry
	// Waiting is how many claims wait; some may have died, and were not met yet.
	Waiting int
}

// Held says whether somebody holds the lock.
func (i LockInfo) Held() bool { return len(i.Entries) > 0 }

// Reentry tells what an owner did on a lock that it held already.
type Reentry struct {
	// Count is how many entries were made after the first.
	Count int
	// WorkedThroughAt is when the last WorkThrough was granted, by the server's
	// clock; zero for never.
	WorkedThroughAt time.Time
	// Extended is by how much ExtendAndWorkThrough has moved the deadline in
	// all, before anything was given back.
	Extended time.Duration
	// LastLease is the lease of the last ExtendAndWorkThrough.
	LastLease time.Duration
	// ExtendedAt is when that one was granted, by the server's clock; zero for
	// never.
	ExtendedAt time.Time
}

// QueueInfo is the line of a lock at one moment.
type QueueInfo struct {
	// Name is the lock's.
	Name string
	// Waiting is how many claims wait; some may have died, and were not met yet.
	Waiting int
	// Waiters are the first 100 of them, in order.
	Waiters []berth.Waiter
}

// Info reads the lock. It returns berth.ErrInvalidConfig for a bad name,
// berth.ErrIncompatible, or the server's error.
func (c *Client) Info(ctx context.Context, name string) (LockInfo, error) {
	if err := keyspace.CheckName(name); err != nil {
		return LockInfo{}, err
	}
	return c.node.Load().read(ctx, name)
}

// Locked says whether somebody holds the lock. Its errors are those of Info.
func (c *Client) Locked(ctx context.Context, name string) (bool, error) {
	info, err := c.Info(ctx, name)
	return info.Held(), err
}

// Queued says whether a claim waits for the lock. Its errors are those of Info.
func (c *Client) Queued(ctx context.Context, name string) (bool, error) {
	info, err := c.Info(ctx, name)
	return info.Waiting > 0, err
}

// Queue goes through the claims that wait for the lock, the first in line first.
// A claim that waits from beginning to end is there, once; what comes and goes
// meanwhile may be there or not. An error that names a claim says that what is
// stored of it is damaged; the queue goes on. It ends after any other error: those
// of Info.
func (c *Client) Queue(ctx context.Context, name string) iter.Seq2[berth.Waiter, error] {
	if err := keyspace.CheckName(name); err != nil {
		return func(yield func(berth.Waiter, error) bool) { yield(berth.Waiter{}, err) }
	}
	return c.node.Load().Waiters(ctx, name)
}

// Locks goes through the locks of the namespace that are held, in no order. It
// promises what SCAN promises: a lock that is held from beginning to end is there,
// once. After an error it goes on where it can; errors are berth.ErrIncompatible or
// the server's.
func (c *Client) Locks(ctx context.Context) iter.Seq2[LockInfo, error] {
	return func(yield func(LockInfo, error) bool) {
		for name, err := range c.names(ctx) {
			info := LockInfo{Name: name}
			if err == nil {
				info, err = c.node.Load().read(ctx, name)
			}
			if (err != nil || info.Held()) && !yield(info, err) {
				return
			}
		}
	}
}

// Queues goes through the locks of the namespace that somebody waits for, in no
// order, as Locks does.
func (c *Client) Queues(ctx context.Context) iter.Seq2[QueueInfo, error] {
	return func(yield func(QueueInfo, error) bool) {
		for name, err := range c.names(ctx) {
			queue := QueueInfo{Name: name}
			if err == nil {
				queue, err = c.queue(ctx, name)
			}
			if (err != nil || queue.Waiting > 0) && !yield(queue, err) {
				return
			}
		}
	}
}

// queueShown is how many waiters a QueueInfo has.
const queueShown = 100

func (c *Client) queue(ctx context.Context, name string) (QueueInfo, error) {
	queue := QueueInfo{Name: name}
	for w, err := range c.node.Load().Waiters(ctx, name) {
		if err != nil {
			return queue, err
		}
		if queue.Waiting++; queue.Waiting <= queueShown {
			queue.Waiters = append(queue.Waiters, w)
		}
	}
	return queue, nil
}

// names goes through the names that the server knows, idle ones too.
func (c *Client) names(ctx context.Context) iter.Seq2[string, error] {
	return line.Names(ctx, c.redis, c.space, keyspace.Lock, c.cfg.CallTimeout)
}

// read runs lock_info.
func (n *node) read(ctx context.Context, name string) (LockInfo, error) {
	info := LockInfo{Name: name}
	r, err := n.Run(ctx, n.info, scriptkit.Bounded, name)
	if err != nil {
		return info, err
	}
	if r.Status() != statusInfo {
		return info, line.Unexpected(name, &r)
	}
	now := time.UnixMilli(r.Int(1))
	info.Waiting = int(r.Int(2))
	info.Reentry = Reentry{
		Count: int(r.Int(3)), WorkedThroughAt: moment(r.Int(4)), Extended: line.Millis(r.Int(5)),
		LastLease: line.Millis(r.Int(6)), ExtendedAt: moment(r.Int(7)),
	}
	for i := 8; i < r.Len(); i += 3 {
		h, err := line.Holder(name, r.Str(i), now, r.Int(i+1), r.Str(i+2))
		if err != nil {
			return info, err
		}
		info.Entries = append(info.Entries, h)
		info.Left = max(info.Left, h.Left)
	}
	if info.Held() {
		outer := info.Entries[0]
		info.Fence, info.Owner = outer.Fence, outer.Owner
		if info.Owner == "" {
			info.Owner = outer.ID
		}
	}
	return info, r.Err()
}

// moment reads a time of the server, where 0 is none.
func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
