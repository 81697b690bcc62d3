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

// export works until it is done or its context ends.
func export(ctx context.Context, work time.Duration) error {
	select {
	case <-time.After(work):
		fmt.Println("exported")
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Do runs a function under a lock. The context of the function ends with the
// caller's context or with the lock, whichever comes first.
func ExampleLocks_Do() {
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

	err = locks.Do(ctx, "report", nil, func(ctx context.Context) error { return export(ctx, time.Millisecond) })
	fmt.Println(err)

	// With NoRenew the lock ends with its lease, and Do returns ErrExpired.
	opts := &qlock.LockOptions{NoRenew: true, Lease: time.Second}
	err = locks.Do(ctx, "report", opts, func(ctx context.Context) error { return export(ctx, time.Hour) })
	fmt.Println(errors.Is(err, berth.ErrExpired))
	// Output:
	// exported
	// <nil>
	// true
}
