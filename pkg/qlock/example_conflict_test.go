package qlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
)

// What happens when the owner of a claim holds the lock already is chosen per
// call. The owner is in the context: that of Do, or one of berth.WithOwner.
func ExampleLockOptions_conflict() {
	locks, done := open(qlock.Config{})
	defer done()

	ctx := berth.WithOwner(context.Background(), "order 42")
	err := locks.Do(ctx, "stock", nil, func(ctx context.Context) error {
		// The default: what would wait for itself is told so at once.
		_, err := locks.Lock(ctx, "stock", nil)
		fmt.Println("fail:", errors.Is(err, berth.ErrDeadlock))

		// Wait stands in line behind its own owner, so the wait must end.
		opts := &qlock.LockOptions{Conflict: qlock.Wait, MaxWait: time.Second}
		_, err = locks.Lock(ctx, "stock", opts)
		fmt.Println("wait:", errors.Is(err, berth.ErrBusy))

		inner, err := locks.Lock(ctx, "stock", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		if err != nil {
			return err
		}
		fmt.Println("work:", inner.Process(), inner.Fence() == locks.Fence(ctx, "stock"))
		return inner.Release(ctx)
	})
	fmt.Println(err)
	// Output:
	// fail: true
	// wait: true
	// work: reentered true
	// <nil>
}

// ExtendAndWorkThrough adds the time that the inner work needs to what its owner
// holds; what was not used goes back with the inner release.
func ExampleLockOptions_conflict_extend() {
	locks, done := open(qlock.Config{})
	defer done()

	ctx := context.Background()
	outer, err := locks.Lock(ctx, "stock", &qlock.LockOptions{NoRenew: true, Lease: 5 * time.Minute})
	if err != nil {
		panic(err)
	}
	show := func(what string) {
		stats, err := locks.Operator().Stats(ctx, "stock")
		if err != nil {
			panic(err)
		}
		fmt.Println(what, stats.Left.Round(time.Minute), "left,", stats.Holders, "entries")
	}
	show("outer:")

	inner, err := locks.Lock(outer.Context(), "stock", &qlock.LockOptions{
		Conflict: qlock.ExtendAndWorkThrough, Lease: 3 * time.Minute,
	})
	if err != nil {
		panic(err)
	}
	show("inner:")

	fmt.Println(inner.Release(ctx))
	show("outer:")
	// Output:
	// outer: 5m0s left, 1 entries
	// inner: 8m0s left, 2 entries
	// <nil>
	// outer: 5m0s left, 1 entries
}
