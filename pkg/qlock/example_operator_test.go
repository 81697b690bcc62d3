package qlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// A field that a call leaves zero comes from the defaults. In a call
// berth.Forever takes a bound away, and NoDefaults ignores all defaults.
func ExampleConfig_defaults() {
	ctx, redis, end := newRedis()
	defer end()
	n, err := node.New(redis, node.Config{Namespace: "shop"})
	check(err)
	defer func() { _ = n.Close(ctx) }()
	// The defaults count for each call of the program that says nothing else.
	locks := qlock.New(n, &qlock.Config{Defaults: qlock.LockOptions{
		Conflict: qlock.WorkThrough,
		Lease:    30 * time.Second,
		MaxHold:  10 * time.Minute,
		MaxWait:  5 * time.Second,
		Meta:     map[string]string{"release": "2026-11"},
	}})

	reader, err := inspect.New(redis, inspect.Config{Namespace: "shop"})
	check(err)
	for _, call := range []struct {
		name string
		opts *qlock.LockOptions
	}{
		{"by the defaults", nil},
		{"for the night", &qlock.LockOptions{MaxHold: berth.Forever, Lease: time.Minute}},
		{"on its own", &qlock.LockOptions{NoDefaults: true}},
	} {
		_, err := locks.Lock(ctx, call.name, call.opts)
		check(err)
		page, err := reader.Holders(ctx, keyspace.Lock, call.name, "", 0)
		for _, holder := range page.Items {
			fmt.Println(call.name+":", holder.Lease, holder.MaxHold, holder.Meta, err)
		}
	}

	// Every call refuses defaults that no call could have, and so does Check of the node.
	_, err = qlock.New(n, &qlock.Config{Defaults: qlock.LockOptions{MaxWait: -time.Second}}).TryLock(ctx, "door", nil)
	var refused *berth.ConfigError
	if errors.As(err, &refused) {
		fmt.Println(refused.Field, refused.Problem)
	}
	// Output:
	// by the defaults: 30s 10m0s map[release:2026-11] <nil>
	// for the night: 1m0s 0s map[release:2026-11] <nil>
	// on its own: 5s 0s map[] <nil>
	// Defaults.MaxWait -1s is negative
}

// An observer hears of all that happens: it counts, logs or traces. The page
// docs/generated/events.md lists the kinds.
func ExampleNew_observer() {
	ctx, n, end := newNode(node.Config{
		Observer: observe.Func(func(e observe.Event) {
			fmt.Println(e.Kind, e.Name, e.Attrs["request"])
		}),
		// Heartbeats and repeated calls are events too: none comes before the example is over.
		Lease: time.Minute, CallTimeout: time.Minute,
	})
	defer end()
	locks := qlock.New(n, &qlock.Config{Lease: time.Minute})

	// Work under a lock that its owner enters twice.
	attrs := map[string]any{"request": 4711}
	outer := &qlock.LockOptions{Attrs: attrs}
	inner := &qlock.LockOptions{Attrs: attrs, Conflict: qlock.WorkThrough}
	fmt.Println(locks.Do(ctx, "stock", outer, func(ctx context.Context) error {
		return locks.Do(ctx, "stock", inner, func(context.Context) error { return nil })
	}))
	// Output:
	// granted stock 4711
	// reentered stock 4711
	// reentry_ended stock 4711
	// released stock 4711
	// <nil>
}

// The nodes of a swarm watch each other, so that a lock without end goes when its
// process dies. All nodes that take part start the swarm, with the same
// ZombieAfter. Config.Swarm.Auto of the node starts it with the node.
func Example_swarm() {
	ctx, redis, end := newRedis()
	defer end()
	for _, label := range []string{"billing", "shipping"} {
		n, err := node.New(redis, node.Config{Label: label})
		check(err)
		defer func() { _ = n.Close(ctx) }()
		check(n.Swarm().Start(ctx))
	}
	looks, err := node.New(redis, node.Config{}) // who looks need not take part
	check(err)
	defer func() { _ = looks.Close(ctx) }()

	fmt.Println("takes part:", looks.Swarm().Status().Running)
	for other, err := range looks.Swarm().Info(ctx) {
		check(err)
		fmt.Println("a zombie:", other.Zombie)
	}
	flushed, err := looks.Swarm().FlushNow(ctx)
	fmt.Println("flushed:", flushed.Nodes, err)
	// Output:
	// takes part: false
	// a zombie: false
	// a zombie: false
	// flushed: 0 <nil>
}

// Operators change the locks of a namespace, whoever holds them: that of the node has the calls of all kinds. An inspect.Reader
// shows them.
// Two wait here: LIFO stands behind Queued, though it came first.
func ExampleOperator() {
	queued := make(chan struct{})
	ctx, redis, end := newRedis()
	defer end()
	n, err := node.New(redis, node.Config{Label: "host-1/billing/4711", Lease: time.Minute, Observer: observe.Func(func(e observe.Event) {
		if e.Kind == observe.Queued {
			queued <- struct{}{}
		}
	})})
	check(err)
	defer func() { _ = n.Close(ctx) }()
	locks := qlock.New(n, nil)
	lock, err := locks.Lock(berth.WithOwner(ctx, "order 42"), "stock", &qlock.LockOptions{
		NoRenew: true, Lease: time.Minute, Meta: map[string]string{"job": "7"},
	})
	check(err)
	var waiting sync.WaitGroup
	wait := func(owner string, access qlock.Access) {
		waiting.Go(func() {
			check(locks.Do(berth.WithOwner(ctx, owner), "stock", &qlock.LockOptions{Access: access},
				func(context.Context) error { fmt.Println(owner, "is served"); return nil }))
		})
		<-queued
	}
	wait("draft", qlock.LIFO)
	wait("letter", qlock.Queued)

	// The locks that somebody holds or waits for, who holds them and who waits, the first in line first.
	reader, err := inspect.New(redis, inspect.Config{})
	check(err)
	for from, more := "", true; more; { // a page of a slow server may be empty, and others follow
		page, err := reader.Names(ctx, inspect.NameFilter{Kinds: []keyspace.Kind{keyspace.Lock}}, from, 0)
		check(err)
		for _, n := range page.Items {
			if n.Lock != nil { // else it is free, and those who wait are told soon
				fmt.Println(n.Name, "is held for", n.Lock.Owner, "by", n.Holders, "entries")
			}
			holders, err := reader.Holders(ctx, n.Kind, n.Name, "", 0)
			check(err)
			for _, h := range holders.Items {
				fmt.Println("  entry of", h.Label, "for job", h.Meta["job"])
			}
			waiters, err := reader.Waiters(ctx, n.Kind, n.Name, "", 0)
			check(err)
			for _, w := range waiters.Items {
				fmt.Println(" ", w.Owner, "has", w.Ahead, "ahead")
			}
		}
		from, more = page.Next, page.Next != ""
	}

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
	// more than an hour left: true <nil>
	// letter is served
	// draft is served
	// ended: 1 <nil>
	// the holder learns it: true
}
