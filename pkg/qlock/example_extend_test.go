package qlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
)

// Extend adds to what is left; Renew starts the lease anew and never shortens.
func ExampleLock_Extend() {
	locks, done := open(qlock.Config{})
	defer done()

	ctx := context.Background()
	lock, err := locks.Lock(ctx, "export", &qlock.LockOptions{NoRenew: true, Lease: 5 * time.Minute})
	if err != nil {
		panic(err)
	}
	show := func(what string, err error) {
		fmt.Println(what, lock.Left().Round(time.Minute), err)
	}
	show("lock", nil)
	show("extend", lock.Extend(ctx, 10*time.Minute))
	show("renew", lock.Renew(ctx))
	// Output:
	// lock 5m0s <nil>
	// extend 15m0s <nil>
	// renew 15m0s <nil>
}

// With NoRenew the lock lasts for its lease, and for another one from each Renew
// on.
func ExampleLock_Renew() {
	locks, done := open(qlock.Config{})
	defer done()

	ctx := context.Background()
	lock, err := locks.Lock(ctx, "export", &qlock.LockOptions{NoRenew: true, Lease: 2 * time.Second})
	if err != nil {
		panic(err)
	}
	for part := range 3 {
		fmt.Println("part", part, lock.Renew(ctx))
	}

	<-lock.Done() // nobody renews it any more
	fmt.Println(errors.Is(context.Cause(lock.Context()), berth.ErrExpired))
	fmt.Println(errors.Is(lock.Renew(ctx), berth.ErrExpired))
	// Output:
	// part 0 <nil>
	// part 1 <nil>
	// part 2 <nil>
	// true
	// true
}
