package semaphore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// count stands for metrics: everything that happens is one event.
// docs/generated/events.md lists the kinds.
func count(e observe.Event) { fmt.Println(e.Kind, e.Name, e.Attrs["request"]) }

// An observer hears of everything: count it, log it, trace it.
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
		Observer: observe.Func(count),
		// Heartbeats and repeated calls are events too: none comes before the example is over.
		Lease: time.Minute, CallTimeout: time.Minute,
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()
	gpu := semaphore.New(n, "gpu", 1, semaphore.Config{})
	opts := &semaphore.AcquireOptions{Attrs: map[string]any{"request": 4711}}
	err = gpu.Do(ctx, opts, func(ctx context.Context) error {
		return gpu.TryDo(ctx, opts, func(context.Context) error { return nil })
	})
	fmt.Println(err)
	// Output:
	// granted gpu 4711
	// refused gpu 4711
	// released gpu 4711
	// berth: "gpu" not acquired: full (capacity 1, held 1, waiting 0)
}
