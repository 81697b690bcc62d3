package qlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// explain prints who holds a lock that was refused.
func explain(err error) {
	var refused *berth.AcquireError
	switch {
	case errors.As(err, &refused) && errors.Is(err, berth.ErrBusy):
		fmt.Println(refused.Reason, "by", refused.Holders[0].Label)
	case err != nil:
		fmt.Println("the server was not reached, or refuses:", err)
	}
}

// TryLock takes the lock if the lock is free. If not, the error names the holders.
func ExampleLocks_TryLock() {
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
	n, err := node.New(redis, node.Config{Label: "host-1/nightly/4711"})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()
	locks := qlock.New(n, qlock.Config{})

	running, err := locks.TryLock(ctx, "nightly", nil)
	if err != nil {
		panic(err)
	}
	_, err = locks.TryLock(ctx, "nightly", &qlock.LockOptions{DetailedErrors: true})
	explain(err)
	fmt.Println(running.Release(ctx))
	// Output:
	// held by host-1/nightly/4711
	// <nil>
}
