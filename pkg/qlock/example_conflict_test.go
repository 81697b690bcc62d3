package qlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// again locks what its owner holds already, and prints what came of it.
func again(ctx context.Context, locks *qlock.Locks, opts *qlock.LockOptions) error {
	lock, err := locks.Lock(ctx, "stock", opts)
	if err != nil {
		fmt.Println(errors.Is(err, berth.ErrDeadlock), errors.Is(err, berth.ErrBusy))
		return nil
	}
	fmt.Println(lock.Via(), "with", lock.Left().Round(time.Minute), "left")
	return lock.Release(ctx)
}

// Conflict says what happens if the owner of a call holds the lock already. The
// owner is in the context: Do puts it there, or berth.WithOwner.
func ExampleLockOptions_conflict() {
	server, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	redis, err := server.Client()
	if err != nil {
		panic(err)
	}
	defer redis.Close()
	ctx := context.Background()
	n, err := node.New(redis, node.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()
	locks := qlock.New(n, qlock.Config{})

	outer := &qlock.LockOptions{NoRenew: true, Lease: 5 * time.Minute}
	err = locks.Do(ctx, "stock", outer, func(ctx context.Context) error {
		return errors.Join(
			again(ctx, locks, nil), // the default: ErrDeadlock at once
			// Wait stands in line behind its own owner.
			again(ctx, locks, &qlock.LockOptions{Conflict: qlock.Wait, MaxWait: 3 * time.Second}),
			again(ctx, locks, &qlock.LockOptions{Conflict: qlock.WorkThrough}),
			// Release gives back what is left of the three minutes.
			again(ctx, locks, &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough, Lease: 3 * time.Minute}),
			again(ctx, locks, &qlock.LockOptions{Conflict: qlock.WorkThrough}),
		)
	})
	fmt.Println(err)
	// Output:
	// true false
	// false true
	// reentered with 5m0s left
	// reentered and extended with 8m0s left
	// reentered with 5m0s left
	// <nil>
}
