package qlock_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// See for whom a lock is held, and by how many entries.
func ExampleOperator_Stats() {
	locks, done := open(qlock.Config{})
	defer done()

	ctx := berth.WithOwner(context.Background(), "order 42")
	outer, err := locks.Lock(ctx, "stock", nil)
	if err != nil {
		panic(err)
	}
	if _, err := locks.Lock(outer.Context(), "stock", &qlock.LockOptions{Conflict: qlock.WorkThrough}); err != nil {
		panic(err)
	}
	for _, name := range []string{"stock", "till"} {
		stats, err := locks.Operator().Stats(ctx, name)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: held %t, owner %q, %d entries, %d re-entries\n",
			name, stats.Held(), stats.Owner, stats.Holders, stats.Reentry.Count)
	}
	// Output:
	// stock: held true, owner "order 42", 2 entries, 1 re-entries
	// till: held false, owner "", 0 entries, 0 re-entries
}

// See who waits, the first in line first.
func ExampleOperator_Waiters() {
	queued := make(chan struct{}, 1)
	locks, done := open(qlock.Config{Observer: observe.Func(func(e observe.Event) {
		if e.Kind == observe.Queued {
			queued <- struct{}{}
		}
	})})
	defer done()
	ctx := context.Background()
	if _, err := locks.Lock(ctx, "stock", nil); err != nil {
		panic(err)
	}

	waits, leave := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	for _, who := range []string{"order 1", "order 2"} {
		waiting.Go(func() {
			_, _ = locks.Lock(berth.WithOwner(waits, who), "stock", nil)
		})
		<-queued
	}
	for waiter, err := range locks.Operator().Waiters(ctx, "stock") {
		fmt.Println(waiter.Owner, "has", waiter.Ahead, "ahead", err)
	}
	leave()
	waiting.Wait()
	// Output:
	// order 1 has 0 ahead <nil>
	// order 2 has 1 ahead <nil>
}
