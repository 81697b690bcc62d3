package allocator_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
)

// blocked stands for a proxy's answer to the request of a page.
func blocked(proxy string) bool { return proxy == "a" }

// Swap exchanges a resource that does not work for the next one, in one step: nobody
// gets in between, and the handle stays. Rest says that the resource is to rest when
// it goes back.
func ExampleAllocation_Swap() {
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
	n, err := node.New(redis, node.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()
	proxies := allocator.New(n, "proxies", allocator.Config[string]{})
	if _, err := proxies.Add(ctx, []string{"a", "b"}, nil); err != nil {
		panic(err)
	}

	proxy, err := proxies.Allocate(ctx, nil)
	if err != nil {
		panic(err)
	}
	for blocked(proxy.Value()) {
		fmt.Println("blocked:", proxy.Value())
		if err := proxy.Rest(time.Hour, "blocked"); err != nil {
			panic(err)
		}
		if err := proxy.Swap(ctx); err != nil {
			panic(err)
		}
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
