package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/supervise"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

const (
	// waitLease bounds how long a berth that died in line is waited for, however
	// long the lease of what it waits for is to be.
	waitLease = 10 * time.Second

	defaultLease     = 10 * time.Second
	defaultLockLease = 5 * time.Second // as in package qlock
)

// holding is what a command runs under: a permit, a lock or an allocation.
type holding interface {
	supervise.Hold
	ID() string
	Name() string
	Fence() int64
	Renew(ctx context.Context) error
	Release(ctx context.Context) error
}

// spot is where one claim waits.
type spot struct {
	take  func(ctx context.Context) (holding, error)
	crowd func(ctx context.Context) (string, error) // who is there; asked while the claim waits, and after it has gone
	// holders are those that hold; nil where the crowd tells of them.
	holders func(ctx context.Context) iter.Seq2[berth.Holder, error]
	rests   bool // what is not held need not be free, so that the crowd is always told
}

// acquire waits for what the flags ask for.
func (o *runOptions) acquire(ctx context.Context, conn *connection, label string, notes *notes) (holding, error) {
	open := o.permits
	switch o.what() {
	case "--lock":
		open = o.locks
	case "--pool":
		open = o.allocations
	}
	line, err := open(conn, label, notes)
	if err != nil {
		return nil, inFlags(err, "capacity", "--capacity", "Cooldown", "--cooldown")
	}
	if !o.quiet {
		told, granted := context.WithCancel(ctx)
		defer granted()
		go tellWait(told, time.Now(), line, func(text string) { notes.say("still waiting for %q after %s", o.name(), text) })
	}
	return o.stand(ctx, conn, line)
}

// stand waits in a line. When it returns what is held, at least half of its lease
// is left.
func (o *runOptions) stand(ctx context.Context, conn *connection, line *spot) (holding, error) {
	h, err := line.take(ctx)
	if err != nil {
		return nil, notAcquired(ctx, conn, line, err)
	}
	// A first grant is no longer than the wait lease, whatever the lease.
	span := o.lease
	if o.maxHold != 0 {
		span = min(span, o.maxHold)
	}
	if h.Left() < span/2 {
		if err := h.Renew(ctx); err != nil {
			return nil, notStarted(conn, h, err)
		}
	}
	return h, nil
}

// permits is the line of a semaphore.
func (o *runOptions) permits(conn *connection, label string, notes *notes) (*spot, error) {
	sems, err := conn.sems(semaphore.Config{
		Label: label, Lease: min(o.lease, waitLease), Observer: notes.observer(o.quiet),
		WarnHeldLongerThan: -1, // a command may take its time
	})
	if err != nil {
		return nil, err
	}
	sem, err := sems.Semaphore(o.sem, o.capacity, nil)
	if err != nil {
		return nil, err
	}
	viewers, err := semaphore.New(conn.redis, semaphore.Config{Namespace: conn.namespace, CallTimeout: callTime}) // it only reads: nothing to close
	if err != nil {
		return nil, err
	}
	ops := viewers.Operator()
	take := sem.Acquire
	if o.try {
		take = sem.TryAcquire
	}
	return &spot{
		take: func(ctx context.Context) (holding, error) {
			return take(ctx, &semaphore.AcquireOptions{
				Weight: o.weight, Priority: o.priority, Lease: o.lease, NoRenew: o.noRenew,
				MaxHold: o.maxHold, MaxWait: o.wait,
			})
		},
		crowd: func(ctx context.Context) (string, error) {
			stats, err := ops.Stats(ctx, o.sem)
			return fmt.Sprintf("capacity %d, held %d, waiting %d", stats.Capacity, stats.Held, stats.Waiting), err
		},
		holders: func(ctx context.Context) iter.Seq2[berth.Holder, error] { return ops.Holders(ctx, o.sem) },
	}, nil
}

// locks is the line of a lock.
func (o *runOptions) locks(conn *connection, label string, notes *notes) (*spot, error) {
	locks, err := conn.locks(qlock.Config{
		Label: label, Lease: min(o.lease, waitLease), Observer: notes.observer(o.quiet),
		WarnHeldLongerThan: -1, // a command may take its time
	})
	if err != nil {
		return nil, err
	}
	viewer, err := qlock.New(conn.redis, qlock.Config{Namespace: conn.namespace, CallTimeout: callTime}) // it only reads: nothing to close
	if err != nil {
		return nil, err
	}
	take := locks.Lock
	if o.try {
		take = locks.TryLock
	}
	return &spot{
		take: func(ctx context.Context) (holding, error) {
			return take(ctx, o.lock, &qlock.LockOptions{
				Access: accessOf(o.access), Priority: o.priority, Lease: o.lease, NoRenew: o.noRenew,
				MaxHold: o.maxHold, MaxWait: o.wait,
			})
		},
		crowd: func(ctx context.Context) (string, error) {
			stats, err := viewer.Operator().Stats(ctx, o.lock)
			if err != nil {
				return "", err
			}
			lock, err := withEntries(ctx, viewer, stats)
			if err != nil || !lock.Held() {
				return fmt.Sprintf("free by now, waiting %d", lock.Waiting), err
			}
			outer := lock.Entries[0]
			return fmt.Sprintf("held by %s for %s, waiting %d", holderName(outer), human(outer.Held), lock.Waiting), nil
		},
	}, nil
}

// accessOf reads what validate has looked at.
func accessOf(text string) qlock.Access {
	for _, access := range accesses {
		if access.String() == text {
			return access
		}
	}
	return qlock.Queued
}

// notStarted gives the error of the renewal before the start its exit code. A
// hold that ended before it could be used was not acquired: whoever tries again
// may well get it.
func notStarted(conn *connection, h holding, err error) error {
	if errors.Is(err, berth.ErrNotHeld) || errors.Is(err, berth.ErrReleased) {
		return &exitError{exitNotAcquired, fmt.Errorf("%q not acquired: lost again before the command could start: %w", h.Name(), err)}
	}
	return unreachable(conn.address, err)
}

// looking bounds how long a claim that got nothing looks who is in its way. Tests take longer.
var looking = 2 * time.Second

// notAcquired gives the error of an acquire its exit code, and says who is in the
// way where others are the reason and the error does not know.
func notAcquired(ctx context.Context, conn *connection, line *spot, err error) error {
	var refused *berth.AcquireError
	switch {
	case errors.As(err, &refused) && refused.Reason == berth.ReasonFailed:
		return unreachable(conn.address, refused.Cause)
	case !errors.As(err, &refused):
		return err
	}
	if errors.Is(err, berth.ErrBusy) && (refused.Held == 0 || line.rests) {
		ctx, cancel := context.WithTimeout(ctx, looking)
		defer cancel()
		conn.settle(ctx) // so that the claim itself is not counted
		switch crowd, failed := line.crowd(ctx); {
		case failed != nil:
		case strings.HasSuffix(err.Error(), ")"): // it counts already
			err = fmt.Errorf("%w; %s", err, crowd)
		default:
			err = fmt.Errorf("%w (%s)", err, crowd)
		}
	}
	return &exitError{exitNotAcquired, err}
}
