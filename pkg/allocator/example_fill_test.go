package allocator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

// Add many resources, and show how far it has got.
func ExamplePool_Add() {
	pools, done := open(allocator.Config{})
	defer done()
	proxies := keys(pools, "proxies", allocator.PoolConfig[string]{})

	var addresses []string
	for n := range 500 {
		addresses = append(addresses, fmt.Sprintf("10.0.%d.%d:3128", n/250, n%250))
	}
	change, err := proxies.Add(context.Background(), addresses, &allocator.AddOptions{
		Expiry:   24 * time.Hour,
		Progress: func(done, total int) { fmt.Println(done, "of", total) },
	})
	fmt.Println(change.Added, "added,", change.Kept, "kept", err)
	// Output:
	// 200 of 500
	// 400 of 500
	// 500 of 500
	// 500 added, 0 kept <nil>
}

// Have a pool hold exactly these. What stays keeps its place and its holder, and
// what is leased leaves when it comes back.
func ExamplePool_Replace() {
	pools, done := open(allocator.Config{})
	defer done()
	proxies := keys(pools, "proxies", allocator.PoolConfig[string]{}, "a", "b", "c")

	ctx := context.Background()
	held := allocate(proxies, nil)
	change, err := proxies.Replace(ctx, []string{"c", "d"}, nil)
	fmt.Printf("%+v %v\n", change, err)
	fmt.Println(held.Value(), "is still held:", held.Err() == nil)
	if err := held.Release(ctx); err != nil {
		panic(err)
	}
	left, err := pools.Operator().Resource(ctx, "proxies", "a")
	fmt.Println("a is", left.State, err)
	fmt.Println(allocate(proxies, nil).Value(), allocate(proxies, nil).Value())
	// Output:
	// {Added:1 Kept:1 Removed:2} <nil>
	// a is still held: true
	// a is absent <nil>
	// c d
}

// Keep a pool filled from a list that somebody else keeps. All processes name it, and
// one at a time asks it.
func ExamplePoolConfig_source() {
	refreshed := make(chan int)
	pools, done := open(allocator.Config{Observer: observe.Func(func(ev observe.Event) {
		if ev.Kind == observe.Refreshed {
			refreshed <- ev.Count
		}
	})})
	defer done()
	proxies, err := allocator.NewPool(pools, "proxies", allocator.PoolConfig[string]{
		Source:       func(context.Context) ([]string, error) { return []string{"a", "b"}, nil },
		RefreshEvery: 10 * time.Minute,
		Expiry:       time.Hour, // of what the list has named last an hour ago
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(<-refreshed, "in the pool")
	fmt.Println(allocate(proxies, nil).Value())
	// Output:
	// 2 in the pool
	// a
}
