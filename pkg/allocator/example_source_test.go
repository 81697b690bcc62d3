package allocator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
)

// catalogue is where somebody else keeps the proxies that there are.
func catalogue(context.Context) ([]string, error) { return []string{"a", "b"}, nil }

// Keep a pool filled from a list. All processes name the source, and one process at a
// time asks it.
func ExampleConfig_source() {
	refreshed := make(chan int)
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
	n, err := node.New(redis, node.Config{Observer: observe.Func(func(e observe.Event) {
		if e.Kind == observe.Refreshed {
			refreshed <- e.Count
		}
	})})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()
	proxies := allocator.New(n, "proxies", allocator.Config[string]{
		Source:       catalogue,
		RefreshEvery: 10 * time.Minute,
		Expiry:       time.Hour, // a resource goes one hour after the list has last named it
	})
	fmt.Println(<-refreshed, "in the pool")
	proxy, err := proxies.Allocate(ctx, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(proxy.Value())
	// Output:
	// 2 in the pool
	// a
}
