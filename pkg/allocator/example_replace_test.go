package allocator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
)

// subnet returns the addresses of 250 proxies.
func subnet(number int) []string {
	var addresses []string
	for host := range 250 {
		addresses = append(addresses, fmt.Sprintf("10.0.%d.%d:3128", number, host))
	}
	return addresses
}

// Fill a pool, and later have it hold exactly another list. What stays keeps its
// place and its holder. A leased resource leaves when its holder gives it back.
func ExamplePool_Replace() {
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

	change, err := proxies.Add(ctx, subnet(0), &allocator.AddOptions{
		Expiry:   24 * time.Hour,
		Progress: func(done, total int) { fmt.Println(done, "of", total) },
	})
	fmt.Printf("%+v %v\n", change, err)

	held, err := proxies.Allocate(ctx, nil)
	if err != nil {
		panic(err)
	}
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
