package qlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// tell prints how long the lock still lasts.
func tell(call string, lock *qlock.Lock, err error) {
	fmt.Println(call, lock.Left().Round(time.Minute), err)
}

// Extend adds to the time that is left. Renew starts the lease anew and never
// shortens it.
func ExampleLock_Extend() {
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

	lock, err := locks.Lock(ctx, "export", &qlock.LockOptions{NoRenew: true, Lease: 5 * time.Minute})
	if err != nil {
		panic(err)
	}
	tell("lock", lock, nil)
	tell("extend", lock, lock.Extend(ctx, 10*time.Minute))
	tell("renew", lock, lock.Renew(ctx))
	// Output:
	// lock 5m0s <nil>
	// extend 15m0s <nil>
	// renew 15m0s <nil>
}
