package main

import (
	"context"
	"errors"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
)

// lockState is a lock with its entries, the outermost first.
type lockState struct {
	qlock.Stats
	Entries []berth.Holder
}

// lockedNow returns the locks that are held. What a part of a cluster
// answered is returned with the error of the others.
func lockedNow(ctx context.Context, locks *qlock.Client) ([]lockState, error) {
	var errs []error
	var all []lockState
	for stats, err := range locks.Operator().All(ctx) {
		lock := lockState{Stats: stats}
		if err == nil && stats.Held() {
			lock, err = withEntries(ctx, locks, stats)
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

// withEntries reads the entries of a lock. One that was released meanwhile is free.
func withEntries(ctx context.Context, locks *qlock.Client, stats qlock.Stats) (lockState, error) {
	entries, err := collect(locks.Operator().Holders(ctx, stats.Name))
	if len(entries) == 0 {
		stats = qlock.Stats{Name: stats.Name, Waiting: stats.Waiting}
	}
	return lockState{stats, entries}, err
}
