package qlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
)

// Run a function under a lock. Its context ends with the caller's or with the
// hold, whichever comes first.
func ExampleClient_Do() {
	locks, done := open(qlock.Config{})
	defer done()

	ctx := context.Background()
	err := locks.Do(ctx, "invoice:42", nil, func(ctx context.Context) error {
		fmt.Println("writing")
		return ctx.Err()
	})
	fmt.Println(err)

	// With NoRenew the lock ends with its lease, and Do says so: the function may
	// have been cut off half way.
	opts := &qlock.LockOptions{NoRenew: true, Lease: 2 * time.Second}
	err = locks.Do(ctx, "invoice:42", opts, func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	fmt.Println(errors.Is(err, berth.ErrExpired))
	// Output:
	// writing
	// <nil>
	// true
}
