package qlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
)

// Wait for a bounded time, and tell apart the ways in which a wait ends.
func ExampleClient_Lock_wait() {
	locks, done := open(qlock.Config{})
	defer done()
	if _, err := locks.Lock(context.Background(), "door", nil); err != nil {
		panic(err)
	}

	try := func(ctx context.Context) {
		_, err := locks.Lock(ctx, "door", &qlock.LockOptions{MaxWait: time.Second})
		switch {
		case errors.Is(err, context.Canceled):
			fmt.Println("left:", context.Cause(ctx))
		case errors.Is(err, berth.ErrBusy):
			fmt.Println("others were in the way for too long")
		case errors.Is(err, berth.ErrNotAcquired):
			fmt.Println("not acquired:", err)
		}
	}
	try(context.Background())

	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("the service shuts down"))
	try(ctx)
	// Output:
	// others were in the way for too long
	// left: the service shuts down
}

// A wait can also be bounded by attempts: here three, 500 ms apart. Nothing polls:
// the claim stands in line for as long as the pauses between them take.
func ExampleLockOptions_attempts() {
	locks, done := open(qlock.Config{})
	defer done()

	ctx := context.Background()
	if _, err := locks.Lock(ctx, "door", nil); err != nil {
		panic(err)
	}
	_, err := locks.Lock(ctx, "door", &qlock.LockOptions{
		Attempts: qlock.Attempts{Max: 3, Delay: 500 * time.Millisecond, Jitter: -1},
	})
	var refused *berth.AcquireError
	if errors.As(err, &refused) {
		fmt.Println(refused.Reason, errors.Is(err, berth.ErrBusy))
	}
	// Output:
	// attempts used up true
}
