package qlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// report prints the locks that somebody holds or waits for, who holds them and who
// waits, the first in line first.
func report(ctx context.Context, reader *inspect.Reader) error {
	var all []berth.Name
	for from, more := "", true; more; { // a page of a slow server may be empty, and others follow
		page, err := reader.Names(ctx, inspect.NameFilter{Kinds: []keyspace.Kind{keyspace.Lock}}, from, 0)
		if err != nil {
			return err
		}
		all = append(all, page.Items...)
		from, more = page.Next, page.Next != ""
	}
	for _, n := range all {
		if n.Lock != nil { // else it is free, and those who wait are told soon
			fmt.Println(n.Name, "is held for", n.Lock.Owner, "by", n.Holders, "entries")
		}
		holders, err := reader.Holders(ctx, n.Kind, n.Name, "", 0)
		if err != nil {
			return err
		}
		for _, h := range holders.Items {
			fmt.Println("  entry of", h.Label, "for job", h.Meta["job"])
		}
		waiters, err := reader.Waiters(ctx, n.Kind, n.Name, "", 0)
		if err != nil {
			return err
		}
		for _, w := range waiters.Items {
			fmt.Println(" ", w.Owner, "has", w.Ahead, "ahead")
		}
	}
	return nil
}

// Operators change the locks of a namespace, whoever holds them: that of the node has the calls of all kinds. An inspect.Reader
// shows them.
// Two wait here: LIFO stands behind Queued, though it came first.
func ExampleOperator() {
	queued := make(chan struct{})
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
	n, err := node.New(redis, node.Config{Label: "host-1/billing/4711", Lease: time.Minute, Observer: observe.Func(func(e observe.Event) {
		if e.Kind == observe.Queued {
			queued <- struct{}{}
		}
	})})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()
	locks := qlock.New(n, qlock.Config{})
	reader, err := inspect.New(redis, inspect.Config{})
	if err != nil {
		panic(err)
	}
	lock, err := locks.Lock(berth.WithOwner(ctx, "order 42"), "stock", &qlock.LockOptions{
		NoRenew: true, Lease: time.Minute, Meta: map[string]string{"job": "7"},
	})
	if err != nil {
		panic(err)
	}
	var waiting sync.WaitGroup
	wait := func(owner string, access qlock.Access) {
		waiting.Go(func() {
			err := locks.Do(berth.WithOwner(ctx, owner), "stock", &qlock.LockOptions{Access: access},
				func(context.Context) error { fmt.Println(owner, "is served"); return nil })
			if err != nil {
				panic(err)
			}
		})
		<-queued
	}
	wait("draft", qlock.LIFO)
	wait("letter", qlock.Queued)
	fmt.Println(report(ctx, reader))

	fmt.Println(qlock.NewOperator(n).Extend(ctx, "stock", time.Hour))
	stock, err := reader.Name(ctx, keyspace.Lock, "stock")
	fmt.Println("more than an hour left:", stock.Lock.Left > time.Hour, err)

	// The first in line gets the lock in the same step. The former holder's process
	// is told: until it has heard, two may be inside.
	ended, err := n.Operator().Release(ctx, berth.Target{Kind: keyspace.Lock, Name: "stock"})
	waiting.Wait()
	fmt.Println("ended:", ended, err)
	fmt.Println("the holder learns it:", errors.Is(lock.Release(ctx), berth.ErrReleased))
	// Output:
	// stock is held for order 42 by 1 entries
	//   entry of host-1/billing/4711 for job 7
	//   letter has 0 ahead
	//   draft has 1 ahead
	// <nil>
	// <nil>
	// more than an hour left: true <nil>
	// letter is served
	// draft is served
	// ended: 1 <nil>
	// the holder learns it: true
}
