package qlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
)

// End a hold, whoever has it. The first in line gets the lock in the same step,
// and the holder is told. Until it has heard of it two may be inside.
func ExampleClient_ForceRelease() {
	locks, done := open(qlock.Config{})
	defer done()

	ctx := context.Background()
	lock, err := locks.Lock(ctx, "stock", &qlock.LockOptions{NoRenew: true, Lease: time.Minute})
	if err != nil {
		panic(err)
	}

	// A hold can be given more time as well.
	fmt.Println(locks.ForceExtend(ctx, "stock", time.Hour))
	info, err := locks.Info(ctx, "stock")
	fmt.Println(info.Left > time.Hour, err)

	fmt.Println(locks.ForceRelease(ctx, "stock"))
	fmt.Println(errors.Is(lock.Release(ctx), berth.ErrReleased)) // of the one that held it

	err = locks.ForceRelease(ctx, "stock")
	fmt.Println(errors.Is(err, berth.ErrNotHeld))
	// Output:
	// <nil>
	// true <nil>
	// <nil>
	// true
	// true
}

// End all holds of a namespace, as before a migration.
func ExampleClient_ForceReleaseAll() {
	locks, done := open(qlock.Config{})
	defer done()

	ctx := context.Background()
	for _, name := range []string{"stock", "till"} {
		if _, err := locks.Lock(ctx, name, nil); err != nil {
			panic(err)
		}
	}
	fmt.Println(locks.ForceReleaseAll(ctx))
	fmt.Println(locks.ForceReleaseAll(ctx))
	// Output:
	// 2 <nil>
	// 0 <nil>
}
