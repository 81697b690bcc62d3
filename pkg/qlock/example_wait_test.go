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

// enter waits for the door, and prints how the wait ended.
func enter(ctx context.Context, locks *qlock.Locks, opts *qlock.LockOptions) {
	_, err := locks.Lock(ctx, "door", opts)
	var refused *berth.AcquireError
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Println("left:", context.Cause(ctx))
	case errors.As(err, &refused) && errors.Is(err, berth.ErrBusy):
		fmt.Println("others hold it:", refused.Reason)
	case errors.Is(err, berth.ErrNotAcquired):
		fmt.Println("not acquired:", err)
	}
}

// A wait ends with MaxWait, with the attempts, or with the context.
func ExampleLocks_Lock_wait() {
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
	if _, err := locks.Lock(ctx, "door", nil); err != nil {
		panic(err)
	}

	enter(ctx, locks, &qlock.LockOptions{MaxWait: 3 * time.Second})

	// Three attempts, 2 s apart. Nothing polls: the claim stands in line for the
	// time that the attempts would take.
	attempts := qlock.Attempts{Max: 3, Delay: 2 * time.Second, Jitter: -1}
	enter(ctx, locks, &qlock.LockOptions{Attempts: attempts})

	leaving, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("the service shuts down"))
	enter(leaving, locks, nil)
	// Output:
	// others hold it: timed out
	// others hold it: attempts used up
	// left: the service shuts down
}
