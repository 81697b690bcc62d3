package qlock_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// Everything that happens is one event to one observer: count it, log it, trace
// it. docs/generated/events.md lists the kinds.
func ExampleConfig_observer() {
	locks, done := open(qlock.Config{
		Observer: observe.Func(func(e observe.Event) {
			fmt.Println(e.Kind, e.Name, e.Attrs["request"])
		}),
	})
	defer done()

	ctx := context.Background()
	opts := &qlock.LockOptions{Attrs: map[string]any{"request": 4711}}
	work := &qlock.LockOptions{Attrs: opts.Attrs, Conflict: qlock.WorkThrough}
	err := locks.Do(ctx, "stock", opts, func(ctx context.Context) error {
		if err := locks.Do(ctx, "stock", work, func(context.Context) error { return nil }); err != nil {
			return err
		}
		return locks.Do(ctx, "stock", opts, func(context.Context) error { return nil })
	})
	fmt.Println(err)
	// Output:
	// granted stock 4711
	// reentered stock 4711
	// reentry_ended stock 4711
	// deadlock stock 4711
	// released stock 4711
	// berth: "stock" not acquired: deadlock: would wait for its own owner
}
