package qlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
)

// Take the lock if it is free, and say what is in the way if it is not.
func ExampleClient_TryLock() {
	locks, done := open(qlock.Config{Label: "host-1/nightly/4711"})
	defer done()

	ctx := context.Background()
	running, err := locks.TryLock(ctx, "nightly", nil)
	if err != nil {
		panic(err)
	}

	_, err = locks.TryLock(ctx, "nightly", &qlock.LockOptions{DetailedErrors: true})
	var refused *berth.AcquireError
	switch {
	case errors.As(err, &refused) && errors.Is(err, berth.ErrBusy):
		fmt.Println(refused.Reason, "by", refused.Holders[0].Label)
	case err != nil:
		fmt.Println("the server was not reached, or refuses:", err)
	}

	fmt.Println(running.Release(ctx))
	// Output:
	// held by host-1/nightly/4711
	// <nil>
}
