package app

import (
	"context"
	"errors"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
)

// LockState is a lock with its entries, the outermost first.
type LockState struct {
	qlock.Stats
	Entries []berth.Holder
}

// LockedNow returns the locks that are held. What a part of a cluster
// answered is returned with the error of the others.
func LockedNow(ctx context.Context, locks *qlock.Client) ([]LockState, error) {
	var errs []error
	var all []LockState
	for stats, err := range locks.Operator().All(ctx) {
		lock := LockState{Stats: stats}
		if err == nil && stats.Held() {
			lock, err = WithEntries(ctx, locks, stats)
		}
		switch {
		case err != nil:
			errs = append(errs, err)
		case lock.Held():
			all = append(all, lock)
		}
	}
	return all, errors.Join(errs...)
}

// WithEntries reads the entries of a lock. One that was released meanwhile is free.
func WithEntries(ctx context.Context, locks *qlock.Client, stats qlock.Stats) (LockState, error) {
	entries, err := Collect(locks.Operator().Holders(ctx, stats.Name))
	if len(entries) == 0 {
		stats = qlock.Stats{Name: stats.Name, Waiting: stats.Waiting}
	}
	return LockState{stats, entries}, err
}
