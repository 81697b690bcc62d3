package allocator_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/allocator"
)

// Try all free resources, four at a time. What does not work rests, and who holds a
// resource is left alone.
func ExamplePool_CheckHealth() {
	pools, done := open(allocator.Config{})
	defer done()
	proxies := keys(pools, "proxies", allocator.PoolConfig[string]{
		Healthy: func(_ context.Context, proxy string) error {
			if proxy == "c" {
				return errors.New("no answer")
			}
			return nil
		},
		FailureRest: time.Hour,
	}, "a", "b", "c", "d")

	ctx := context.Background()
	held := allocate(proxies, nil)
	report, err := proxies.CheckHealth(ctx, 4)
	fmt.Printf("%+v %v\n", report, err)
	info, err := pools.Operator().Resource(ctx, "proxies", "c")
	fmt.Println(info.State, info.Reason, err)
	fmt.Println(held.Err())
	// Output:
	// {Checked:3 Healthy:2 Unhealthy:1 Skipped:1} <nil>
	// resting no answer <nil>
	// <nil>
}

// Take one that works now.
func ExamplePool_AllocateHealthy() {
	pools, done := open(allocator.Config{})
	defer done()
	proxies := keys(pools, "proxies", allocator.PoolConfig[string]{
		Healthy: func(_ context.Context, proxy string) error {
			if proxy == "a" {
				return errors.New("no answer")
			}
			return nil
		},
	}, "a", "b")

	proxy, err := proxies.AllocateHealthy(context.Background(), nil)
	fmt.Println(proxy.Value(), err)
	// Output: b <nil>
}
