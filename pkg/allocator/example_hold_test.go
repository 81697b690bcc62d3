package allocator_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// Wait in line for a resource, first come, first served. A wait ends with the grant,
// with MaxWait or with the context; TryAllocate does not wait.
func ExamplePool_Allocate_wait() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	licences := allocator.New(n, "licences", allocator.PoolConfig[string]{})
	_, err := licences.Add(ctx, []string{"ABC-123"}, nil)
	check(err)

	// enter waits for a licence, and prints how the wait ended.
	enter := func(ctx context.Context, opts *allocator.AllocateOptions) {
		licence, err := licences.Allocate(ctx, opts)
		switch {
		case err == nil:
			fmt.Println("has", licence.Value())
		case errors.Is(err, context.Canceled):
			fmt.Println("left:", context.Cause(ctx))
		case errors.Is(err, berth.ErrBusy):
			fmt.Println("others have them all")
		case errors.Is(err, berth.ErrNotAcquired):
			fmt.Println("not acquired:", err)
		}
	}
	first, err := licences.Allocate(ctx, nil)
	check(err)
	_, err = licences.TryAllocate(ctx, nil)
	fmt.Println(errors.Is(err, berth.ErrBusy))
	enter(ctx, &allocator.AllocateOptions{MaxWait: 3 * time.Second})

	leaving, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("the service shuts down"))
	enter(leaving, nil)

	var waiting sync.WaitGroup
	waiting.Go(func() { enter(ctx, nil) })
	fmt.Println(first.Release(ctx))
	waiting.Wait()
	// Unordered output:
	// true
	// others have them all
	// left: the service shuts down
	// <nil>
	// has ABC-123
}

// Give a customer the proxy that the customer had before. If another customer has
// that proxy, nobody waits: the customer gets another one and is bound to that.
func ExamplePool_Allocate_bind() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	proxies := allocator.New(n, "proxies", allocator.PoolConfig[string]{})
	_, err := proxies.Add(ctx, []string{"a", "b", "c"}, nil)
	check(err)

	// visit is a request of a customer that needs a proxy for a moment.
	visit := func(customer string) {
		proxy, err := proxies.Allocate(ctx, &allocator.AllocateOptions{Bind: customer, BindFor: 24 * time.Hour})
		check(err)
		fmt.Println(customer, "has", proxy.Resource())
		check(proxy.Release(ctx))
	}
	visit("customer-7")
	visit("customer-8")
	visit("customer-7") // though c has been free for longer

	check(proxies.Bind(ctx, "customer-7", "c", nil))
	visit("customer-7")
	fmt.Println(proxies.Unbind(ctx, "customer-7"))
	for binding, err := range allocator.NewOperator(n).Bindings(ctx, "proxies") {
		fmt.Println(binding.Name, binding.Resource, binding.Left > 23*time.Hour, err)
	}
	// Output:
	// customer-7 has a
	// customer-8 has b
	// customer-7 has a
	// customer-7 has c
	// <nil>
	// customer-8 b true <nil>
}

// A field that a call leaves zero comes from the pool's defaults, then from the built-in ones.
func Example_defaults() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	proxies := allocator.New(n, "proxies", allocator.PoolConfig[string]{
		Defaults: allocator.AllocateOptions{Lease: time.Minute, MaxWait: 10 * time.Second, BindFor: 24 * time.Hour},
	})
	_, err := proxies.Add(ctx, []string{"a", "b"}, nil)
	check(err)

	for _, call := range []*allocator.AllocateOptions{
		nil, {Bind: "customer-7", Lease: 30 * time.Second}, {NoDefaults: true},
	} {
		proxy, err := proxies.Allocate(ctx, call)
		check(err)
		fmt.Println("lease", proxy.Lease())
		check(proxy.Release(ctx))
	}
	binding, err := proxies.Binding(ctx, "customer-7")
	fmt.Println("bound for a day:", binding.Left > 23*time.Hour, err)
	// Output:
	// lease 1m0s
	// lease 30s
	// lease 10s
	// bound for a day: true <nil>
}

// Do runs a function with a resource and gives the resource back, even after a
// panic.
func ExamplePool_Do() {
	ctx, redis, end := newRedis()
	defer end()
	n, err := node.New(redis, node.Config{})
	check(err)
	defer func() { _ = n.Close(ctx) }()
	accounts := allocator.New(n, "accounts", allocator.PoolConfig[string]{})
	_, err = accounts.Add(ctx, []string{"anna"}, nil)
	check(err)

	fmt.Println(accounts.Do(ctx, nil, func(ctx context.Context, account *allocator.Allocation[string]) error {
		fmt.Println("posting as", account.Value())
		return ctx.Err() // ctx ends when the lease is lost
	}))
	reader, err := inspect.New(redis, inspect.Config{})
	check(err)
	pool, err := reader.Name(ctx, keyspace.Pool, "accounts")
	fmt.Println(pool.Pool.Free, "free", err)
	// Output:
	// posting as anna
	// <nil>
	// 1 free <nil>
}

// Hand a resource to another process without giving it back in between: a request
// takes an account, and a job that runs later goes on with it.
func ExamplePool_Resume() {
	ctx, redis, end := newRedis()
	defer end()
	n, err := node.New(redis, node.Config{})
	check(err)
	defer func() { _ = n.Close(ctx) }()
	accounts := allocator.New(n, "accounts", allocator.PoolConfig[string]{})
	_, err = accounts.Add(ctx, []string{"anna"}, nil)
	check(err)

	account, err := accounts.Allocate(ctx, nil)
	check(err)
	token, err := account.Detach(ctx)
	check(err)
	message, err := token.MarshalText()
	check(err)

	// finish is what another process does with the token, within the lease.
	finish := func() error {
		n, err := node.New(redis, node.Config{})
		check(err)
		defer func() { _ = n.Close(ctx) }()
		accounts := allocator.New(n, "accounts", allocator.PoolConfig[string]{})
		var token berth.Token
		check(token.UnmarshalText(message))
		account, err := accounts.Resume(ctx, token)
		if err != nil {
			return err // berth.ErrNotHeld: too late, or somebody else has resumed it
		}
		fmt.Println("resumed:", account.Value())
		return account.Release(ctx)
	}
	fmt.Println(finish())
	fmt.Println(errors.Is(finish(), berth.ErrNotHeld))
	// Output:
	// resumed: anna
	// <nil>
	// true
}

// Swap exchanges a resource that does not work for the next one, in one step: nobody
// gets in between, and the handle stays. Rest says that the resource is to rest when
// it goes back.
func ExampleAllocation_Swap() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	proxies := allocator.New(n, "proxies", allocator.PoolConfig[string]{})
	_, err := proxies.Add(ctx, []string{"a", "b"}, nil)
	check(err)

	// blocked stands for a proxy's answer to the request of a page.
	blocked := func(proxy string) bool { return proxy == "a" }
	proxy, err := proxies.Allocate(ctx, nil)
	check(err)
	for blocked(proxy.Value()) {
		fmt.Println("blocked:", proxy.Value())
		check(proxy.Rest(time.Hour, "blocked"))
		check(proxy.Swap(ctx))
	}
	fmt.Println("goes on with", proxy.Value())
	info, err := allocator.NewOperator(n).Resource(ctx, "proxies", "a")
	fmt.Println(info.Resource, info.State, info.Left > 59*time.Minute, info.Reason, err)

	// No other resource is free now: the holder keeps what it has.
	fmt.Println(errors.Is(proxy.Swap(ctx), berth.ErrBusy), proxy.Value(), proxy.Err())
	// Output:
	// blocked: a
	// goes on with b
	// a resting true blocked <nil>
	// true b <nil>
}

// A session that the other side will end soon leaves the pool by itself.
func ExampleAllocation_ExpireIn() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	sessions := allocator.New(n, "sessions", allocator.PoolConfig[string]{})
	_, err := sessions.Add(ctx, []string{"a", "b", "c"}, nil)
	check(err)

	err = sessions.Do(ctx, nil, func(_ context.Context, session *allocator.Allocation[string]) error {
		return session.ExpireIn(10 * time.Minute)
	})
	check(err)
	info, err := allocator.NewOperator(n).Resource(ctx, "sessions", "a")
	fmt.Println(info.State, info.Expiry.Round(time.Minute), err)
	// Output:
	// free 10m0s <nil>
}

// Work that turns out to be long asks for a longer lease; a shorter one takes no time away.
func ExampleAllocation_RenewFor() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	sessions := allocator.New(n, "sessions", allocator.PoolConfig[string]{})
	_, err := sessions.Add(ctx, []string{"a", "b", "c"}, nil)
	check(err)

	session, err := sessions.Allocate(ctx, &allocator.AllocateOptions{NoRenew: true, Lease: time.Minute})
	check(err)
	fmt.Println(session.RenewFor(ctx, time.Hour), session.Lease(), session.Left() > 50*time.Minute)
	fmt.Println(session.RenewFor(ctx, time.Second), session.Lease(), session.Left() > 50*time.Minute)
	// Output:
	// <nil> 1h0m0s true
	// <nil> 1s true
}
