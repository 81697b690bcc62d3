package qlock_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// Ways to stand in line may be mixed on one name: last come, first served, stands
// behind first come, first served. Random would draw a place once.
func ExampleLockOptions_access() {
	queued := make(chan struct{}, 1)
	locks, done := open(qlock.Config{Observer: observe.Func(func(e observe.Event) {
		if e.Kind == observe.Queued {
			queued <- struct{}{}
		}
	})})
	defer done()
	ctx := context.Background()
	first, err := locks.Lock(ctx, "printer", nil)
	if err != nil {
		panic(err)
	}

	var waiting sync.WaitGroup
	join := func(who string, access qlock.Access) {
		waiting.Go(func() {
			ctx := berth.WithOwner(ctx, who)
			opts := &qlock.LockOptions{Access: access}
			if err := locks.Do(ctx, "printer", opts, func(context.Context) error { fmt.Println(who); return nil }); err != nil {
				panic(err)
			}
		})
		<-queued
	}
	join("draft 1", qlock.LIFO)
	join("letter 1", qlock.Queued)
	join("draft 2", qlock.LIFO)
	join("letter 2", qlock.Queued)

	if err := first.Release(ctx); err != nil {
		panic(err)
	}
	waiting.Wait()
	// Output:
	// letter 1
	// letter 2
	// draft 2
	// draft 1
}
