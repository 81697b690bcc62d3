package allocator_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
)

// Fill a pool, and later have it hold exactly another list. What stays keeps its
// place and its holder. A leased resource leaves when its holder gives it back.
func ExamplePool_Replace() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	proxies := allocator.New(n, "proxies", allocator.PoolConfig[string]{})

	// subnet returns the addresses of 250 proxies.
	subnet := func(number int) (addresses []string) {
		for host := range 250 {
			addresses = append(addresses, fmt.Sprintf("10.0.%d.%d:3128", number, host))
		}
		return addresses
	}
	change, err := proxies.Add(ctx, subnet(0), &allocator.AddOptions{
		Expiry:   24 * time.Hour,
		Progress: func(done, total int) { fmt.Println(done, "of", total) },
	})
	fmt.Printf("%+v %v\n", change, err)

	held, err := proxies.Allocate(ctx, nil)
	check(err)
	change, err = proxies.Replace(ctx, append(subnet(0)[200:], subnet(1)...), nil)
	fmt.Printf("%+v %v\n", change, err)
	fmt.Println(held.Value(), "is still held:", held.Err() == nil)
	fmt.Println(held.Release(ctx))
	info, err := allocator.NewOperator(n).Resource(ctx, "proxies", held.Resource())
	fmt.Println(info.Resource, "is", info.State, err)
	// Output:
	// 200 of 250
	// 250 of 250
	// {Added:250 Kept:0 Removed:0} <nil>
	// {Added:250 Kept:50 Removed:200} <nil>
	// 10.0.0.0:3128 is still held: true
	// <nil>
	// 10.0.0.0:3128 is absent <nil>
}

// Keep a pool filled from a list. All processes name the source, and one process at a
// time asks it.
func ExamplePoolConfig_source() {
	refreshed := make(chan int)
	ctx, n, end := newNode(node.Config{Observer: observe.Func(func(e observe.Event) {
		if e.Kind == observe.Refreshed {
			refreshed <- e.Count
		}
	})})
	defer end()
	// catalogue is where somebody else keeps the proxies that there are.
	catalogue := func(context.Context) ([]string, error) { return []string{"a", "b"}, nil }
	proxies := allocator.New(n, "proxies", allocator.PoolConfig[string]{
		Source:       catalogue,
		RefreshEvery: 10 * time.Minute,
		Expiry:       time.Hour, // a resource goes one hour after the list has last named it
	})
	fmt.Println(<-refreshed, "in the pool")
	proxy, err := proxies.Allocate(ctx, nil)
	check(err)
	fmt.Println(proxy.Value())
	// Output:
	// 2 in the pool
	// a
}

// A cooldown is a rest after every hold. A rest by hand takes a resource out of turn
// until its time is up, or until a rest of 0 ends it.
func ExamplePool_Rest() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	accounts := allocator.New(n, "accounts", allocator.PoolConfig[string]{Cooldown: time.Minute})
	_, err := accounts.Add(ctx, []string{"anna", "ben", "cleo"}, nil)
	check(err)

	// sign signs in with the next account, and gives the account back.
	sign := func() {
		account, err := accounts.TryAllocate(ctx, nil)
		if errors.Is(err, berth.ErrBusy) {
			fmt.Println("all rest")
			return
		}
		check(err)
		fmt.Println("signed in as", account.Value())
		check(account.Release(ctx))
	}
	fmt.Println(accounts.Rest(ctx, "ben", berth.Forever, "locked by its owner", nil))
	sign()
	sign()
	sign()
	fmt.Println(accounts.Rest(ctx, "ben", 0, "", nil))
	sign()
	fmt.Println(errors.Is(accounts.Rest(ctx, "dora", time.Hour, "", nil), berth.ErrAbsent))
	// Output:
	// <nil>
	// signed in as anna
	// signed in as cleo
	// all rest
	// <nil>
	// signed in as ben
	// true
}

// Up to MaxSharers may hold one resource at once, each with a lease of its own. With
// Shared: true instead, a pool hands its resources out in turn, without leases.
func ExamplePoolConfig_maxSharers() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	mirrors := allocator.New(n, "mirrors", allocator.PoolConfig[string]{MaxSharers: 2})
	_, err := mirrors.Add(ctx, []string{"north", "south"}, nil)
	check(err)

	for range 5 {
		mirror, err := mirrors.TryAllocate(ctx, nil)
		if errors.Is(err, berth.ErrBusy) {
			fmt.Println("each has two users")
			break
		}
		check(err)
		fmt.Println(mirror.Value())
	}
	// Output:
	// north
	// south
	// north
	// south
	// each has two users
}

// The order in which the next claims get the free resources.
func ExamplePool_FreeInOrder() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	sessions := allocator.New(n, "sessions", allocator.PoolConfig[string]{Policy: allocator.MostRecent})
	_, err := sessions.Add(ctx, []string{"a", "b", "c"}, nil)
	check(err)

	for info, err := range sessions.FreeInOrder(ctx) {
		fmt.Println(info.Resource, info.State, err)
	}
	next, err := sessions.TryAllocate(ctx, nil)
	fmt.Println(next.Resource(), err)
	// Output:
	// c free <nil>
	// b free <nil>
	// a free <nil>
	// c <nil>
}

// CheckHealth tries all free resources, here four at a time, and lets rest what does
// not work. AllocateHealthy allocates a resource that works now.
func ExamplePool_CheckHealth() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	// ping stands for a request through a proxy.
	ping := func(_ context.Context, proxy string) error {
		if proxy == "c" {
			return errors.New("no answer")
		}
		return nil
	}
	proxies := allocator.New(n, "proxies", allocator.PoolConfig[string]{Healthy: ping, FailureRest: time.Hour})
	_, err := proxies.Add(ctx, []string{"a", "b", "c", "d"}, nil)
	check(err)

	held, err := proxies.AllocateHealthy(ctx, nil)
	check(err)
	report, err := proxies.CheckHealth(ctx, 4)
	fmt.Printf("%+v %v\n", report, err)
	info, err := allocator.NewOperator(n).Resource(ctx, "proxies", "c")
	fmt.Println(info.State, info.Reason, err)
	fmt.Println(held.Value(), "is still held:", held.Err() == nil)
	// Output:
	// {Checked:3 Healthy:2 Unhealthy:1 Skipped:1} <nil>
	// resting no answer <nil>
	// a is still held: true
}

// DoHealthy runs a function with a resource that works now.
func ExamplePool_DoHealthy() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	sessions := allocator.New(n, "sessions", allocator.PoolConfig[string]{
		Healthy: func(_ context.Context, session string) error {
			if session == "a" {
				return errors.New("signed out")
			}
			return nil
		},
	})
	_, err := sessions.Add(ctx, []string{"a", "b", "c"}, nil)
	check(err)

	err = sessions.DoHealthy(ctx, nil, func(_ context.Context, session *allocator.Allocation[string]) error {
		fmt.Println("working as", session.Value())
		return nil
	})
	info, _ := allocator.NewOperator(n).Resource(ctx, "sessions", "a")
	fmt.Println(err, info.State, info.Reason)
	// Output:
	// working as b
	// <nil> resting signed out
}

// An Operator tells what the resources of a pool do, whoever holds them, and changes the pool's settings. It needs no Pool, only
// the name. The node's operator ends what is held; an inspect.Reader shows the pools.
func ExampleOperator() {
	ctx, redis, end := newRedis()
	defer end()
	n, err := node.New(redis, node.Config{Label: "host-1/crawler/4711"})
	check(err)
	defer func() { _ = n.Close(ctx) }()
	proxies := allocator.New(n, "proxies", allocator.PoolConfig[string]{})
	_, err = proxies.Add(ctx, []string{"a", "b", "c"}, nil)
	check(err)
	proxy, err := proxies.Allocate(ctx, &allocator.AllocateOptions{Meta: map[string]string{"job": "42"}})
	check(err)
	check(proxies.Rest(ctx, "b", time.Hour, "blocked", nil))

	// All pools, and what each resource of a pool does.
	reader, err := inspect.New(redis, inspect.Config{})
	check(err)
	ops := allocator.NewOperator(n)
	for from, more := "", true; more; { // a page of a slow server may be empty, and others follow
		page, err := reader.Names(ctx, inspect.NameFilter{Kinds: []keyspace.Kind{keyspace.Pool}}, from, 0)
		check(err)
		for _, n := range page.Items {
			fmt.Printf("%s: %d free, %d leased, %d resting\n", n.Name, n.Pool.Free, n.Held, n.Pool.Resting)
			for info, err := range ops.Resources(ctx, n.Name) { // in no order
				check(err)
				fmt.Printf("%s is %s %q\n", info.Resource, info.State, info.Reason)
				for _, holder := range info.Holders {
					fmt.Println("by", holder.Label, "for job", holder.Meta["job"])
				}
			}
		}
		from, more = page.Next, page.Next != ""
	}
	found, err := ops.Inspect(ctx, "proxies") // does what is stored fit together?
	fmt.Println(len(found.Problems), "problems", err)
	ended, err := n.Operator().Release(ctx, berth.Target{Kind: keyspace.Pool, Name: "proxies", Node: proxy.Node()})
	fmt.Println(ended, "ended", err)

	// The holder's process hears of it, at the latest by its next call.
	fmt.Println(errors.Is(proxy.Release(ctx), berth.ErrReleased))
	// Unordered output:
	// proxies: 1 free, 1 leased, 1 resting
	// a is leased ""
	// by host-1/crawler/4711 for job 42
	// b is resting "blocked"
	// c is free ""
	// 0 problems <nil>
	// 1 ended <nil>
	// true
}
