package qlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// order is work under a lock that its owner enters twice.
func order(ctx context.Context, locks *qlock.Locks, attrs map[string]any) error {
	outer := &qlock.LockOptions{Attrs: attrs}
	inner := &qlock.LockOptions{Attrs: attrs, Conflict: qlock.WorkThrough}
	return locks.Do(ctx, "stock", outer, func(ctx context.Context) error {
		return locks.Do(ctx, "stock", inner, func(context.Context) error { return nil })
	})
}

// An observer hears of all that happens: it counts, logs or traces. The page
// docs/generated/events.md lists the kinds.
func ExampleNew_observer() {
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
	n, err := node.New(redis, node.Config{
		Observer: observe.Func(func(e observe.Event) {
			fmt.Println(e.Kind, e.Name, e.Attrs["request"])
		}),
		// Heartbeats and repeated calls are events too: none comes before the example is over.
		Lease: time.Minute, CallTimeout: time.Minute,
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()
	locks := qlock.New(n, qlock.Config{Lease: time.Minute})

	fmt.Println(order(ctx, locks, map[string]any{"request": 4711}))
	// Output:
	// granted stock 4711
	// reentered stock 4711
	// reentry_ended stock 4711
	// released stock 4711
	// <nil>
}
