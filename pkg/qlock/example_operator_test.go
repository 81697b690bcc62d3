package qlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/qlock"
)

// report prints the locks that somebody holds or waits for, and their holders.
func report(ctx context.Context, ops *qlock.Operator) error {
	for stats, err := range ops.All(ctx) {
		if err != nil {
			return err
		}
		fmt.Println(stats.Name, "is held for", stats.Owner, "and", stats.Waiting, "wait")
		for holder, err := range ops.Holders(ctx, stats.Name) {
			if err != nil {
				return err
			}
			fmt.Println("by", holder.Label, "with job", holder.Meta["job"])
		}
	}
	return nil
}

// See who holds the locks of a namespace, give a hold more time, and end it by force.
// The server is the embedded one here, so that the example runs with nothing but Go.
func ExampleOperator() {
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
	locks, err := qlock.New(redis, qlock.Config{Namespace: "shop", Label: "host-1/billing/4711"})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer locks.Close(ctx)

	lock, err := locks.Lock(berth.WithOwner(ctx, "order 42"), "stock", &qlock.LockOptions{
		NoRenew: true, Lease: time.Minute, Meta: map[string]string{"job": "7"},
	})
	if err != nil {
		panic(err)
	}

	ops := locks.Operator() // any client of the namespace serves
	if err := report(ctx, ops); err != nil {
		panic(err)
	}
	if err := ops.Extend(ctx, "stock", time.Hour); err != nil {
		panic(err)
	}
	stats, err := ops.Stats(ctx, "stock")
	fmt.Println("more than an hour left:", stats.Left > time.Hour, err)

	// The first in line gets the lock in the same step, and the holder's process is
	// told. Until it has heard, two may be inside.
	ended, err := ops.Release(ctx, berth.Target{Name: "stock"})
	fmt.Println("ended:", ended, err)
	fmt.Println("the holder learns it:", errors.Is(lock.Release(ctx), berth.ErrReleased))
	// Output:
	// stock is held for order 42 and 0 wait
	// by host-1/billing/4711 with job 7
	// more than an hour left: true <nil>
	// ended: 1 <nil>
	// the holder learns it: true
}
