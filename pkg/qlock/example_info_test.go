package qlock_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// See who holds a lock, and by how many entries.
func ExampleClient_Info() {
	locks, done := open(qlock.Config{Label: "host-1/billing/4711"})
	defer done()

	ctx := berth.WithOwner(context.Background(), "order 42")
	outer, err := locks.Lock(ctx, "stock", &qlock.LockOptions{Meta: map[string]string{"job": "7"}})
	if err != nil {
		panic(err)
	}
	if _, err := locks.Lock(outer.Context(), "stock", &qlock.LockOptions{Conflict: qlock.WorkThrough}); err != nil {
		panic(err)
	}

	for _, name := range []string{"stock", "till"} {
		info, err := locks.Info(ctx, name)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: held %t, owner %q, %d entries, %d re-entries\n",
			name, info.Held(), info.Owner, len(info.Entries), info.Reentry.Count)
	}
	for info, err := range locks.Locks(ctx) {
		fmt.Println(info.Name, info.Entries[0].Label, info.Entries[0].Meta["job"], err)
	}
	// Output:
	// stock: held true, owner "order 42", 2 entries, 1 re-entries
	// till: held false, owner "", 0 entries, 0 re-entries
	// stock host-1/billing/4711 7 <nil>
}

// See who waits, the first in line first.
func ExampleClient_Queue() {
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
	for waiter, err := range locks.Queue(ctx, "stock") {
		fmt.Println(waiter.Owner, "has", waiter.Ahead, "ahead", err)
	}
	for queue, err := range locks.Queues(ctx) {
		fmt.Println(queue.Waiting, "wait for", queue.Name, err)
	}
	leave()
	waiting.Wait()
	// Output:
	// order 1 has 0 ahead <nil>
	// order 2 has 1 ahead <nil>
	// 2 wait for stock <nil>
}
