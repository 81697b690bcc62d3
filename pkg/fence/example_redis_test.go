package fence_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/fence"
)

// printPages sends pages to a printer, which checks no fences itself.
func printPages(ctx context.Context, guard *fence.Redis, number int64, pages int) error {
	for page := range pages {
		if err := guard.Admit(ctx, "printer:1", number); err != nil {
			return err
		}
		fmt.Println("page", page+1)
	}
	return nil
}

// If a resource checks no fences itself, ask the guard right before each step. The
// guard does not call back a step that has begun. The last holder of a resource that
// goes away lets the guard forget it.
func ExampleRedis_Admit() {
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
	guard, err := fence.NewRedis(redis, fence.RedisConfig{})
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	fmt.Println(printPages(ctx, guard, 1795222663450890, 2))
	fmt.Println(printPages(ctx, guard, 1795222663450889, 2))
	fmt.Println(guard.Forget(ctx, "printer:1", 1795222663450890))
	// Output:
	// page 1
	// page 2
	// <nil>
	// berth: stale fence for "printer:1": 1795222663450889, after 1795222663450890 was admitted
	// <nil>
}
