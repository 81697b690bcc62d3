package allocator_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
)

// ping stands for a request through a proxy.
func ping(_ context.Context, proxy string) error {
	if proxy == "c" {
		return errors.New("no answer")
	}
	return nil
}

// CheckHealth tries all free resources, here four at a time, and lets rest what does
// not work. AllocateHealthy allocates a resource that works now.
func ExamplePool_CheckHealth() {
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
	proxies := allocator.New(n, "proxies", allocator.Config[string]{Healthy: ping, FailureRest: time.Hour})
	if _, err := proxies.Add(ctx, []string{"a", "b", "c", "d"}, nil); err != nil {
		panic(err)
	}

	held, err := proxies.AllocateHealthy(ctx, nil)
	if err != nil {
		panic(err)
	}
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
