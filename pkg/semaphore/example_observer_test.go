package semaphore_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Everything that happens is one event to one observer: count it, log it, trace
// it. docs/generated/events.md lists the kinds.
func ExampleConfig_observer() {
	sems, done := open(semaphore.Config{
		Observer: observe.Func(func(e observe.Event) {
			fmt.Println(e.Kind, e.Name, e.Attrs["request"])
		}),
	})
	defer done()
	gpu, err := sems.Semaphore("gpu", 1, nil)
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
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
