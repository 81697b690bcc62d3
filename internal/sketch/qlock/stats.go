package qlock

import (
	"context"
	"iter"
	"time"
)

// LockInfo is a lock at one moment. One that nobody holds has no entries.
type LockInfo struct {
	// Name is the name of the lock.
	Name string
	// Owner is whom the hold is for, or "" if the lock is free.
	Owner string
	// Fence is the number of the grant, or 0 if the lock is free.
	Fence int64
	// Left is how long the lock stays held if nothing renews it: the furthest
	// deadline of the entries; berth.Forever for ever.
	Left time.Duration
	// Entries are the owner's holds, the outermost first.
	Entries []Holder
	// Reentry is about the entries after the first.
	Reentry Reentry
	// Waiting is how many claims wait.
	Waiting int
	// Swept is how many expired entries this answer dropped.
	Swept int
}

// Held says whether somebody held the lock.
func (i LockInfo) Held() bool { return false }

// Reentry tells what an owner did on a lock that it held already.
type Reentry struct {
	// Count is how many entries were made after the first.
	Count int
	// WorkedThroughAt is when the last WorkThrough was granted, or zero.
	WorkedThroughAt time.Time
	// Extended is by how much ExtendAndWorkThrough has moved the deadline in
	// all, before anything was given back.
	Extended time.Duration
	// LastLease is the lease of the last ExtendAndWorkThrough.
	LastLease time.Duration
	// ExtendedAt is when that one was granted, or zero.
	ExtendedAt time.Time
}

// QueueInfo is the line of a lock at one moment.
type QueueInfo struct {
	// Name is the name of the lock.
	Name string
	// Waiting is how many claims wait.
	Waiting int
	// Waiters are the first 100 of them, in order.
	Waiters []Waiter
}

// Info reads the lock.
func (c *Client) Info(ctx context.Context, name string) (LockInfo, error) {
	return LockInfo{}, errSketch
}

// Locked says whether somebody holds the lock.
func (c *Client) Locked(ctx context.Context, name string) (bool, error) { return false, errSketch }

// Queued says whether a claim waits for the lock.
func (c *Client) Queued(ctx context.Context, name string) (bool, error) { return false, errSketch }

// Queue lists the line, its first first.
func (c *Client) Queue(ctx context.Context, name string) iter.Seq2[Waiter, error] {
	return func(yield func(Waiter, error) bool) { yield(Waiter{}, errSketch) }
}

// Locks lists the locks that are held, in no order.
func (c *Client) Locks(ctx context.Context) iter.Seq2[LockInfo, error] {
	return func(yield func(LockInfo, error) bool) { yield(LockInfo{}, errSketch) }
}

// Queues lists the locks that somebody waits for, in no order.
func (c *Client) Queues(ctx context.Context) iter.Seq2[QueueInfo, error] {
	return func(yield func(QueueInfo, error) bool) { yield(QueueInfo{}, errSketch) }
}
