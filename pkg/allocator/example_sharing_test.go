package allocator_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

// Several may hold one resource at once, each with a lease of its own: here a key
// of an API that allows two requests at a time.
func ExamplePoolConfig_maxSharers() {
	pools, done := open(allocator.Config{})
	defer done()
	apis := keys(pools, "apis", allocator.PoolConfig[string]{MaxSharers: 2}, "key-1", "key-2")

	ctx := context.Background()
	for range 4 {
		fmt.Println(allocate(apis, nil).Value())
	}
	_, err := apis.TryAllocate(ctx, nil)
	fmt.Println(errors.Is(err, berth.ErrBusy))
	// Output:
	// key-1
	// key-2
	// key-1
	// key-2
	// true
}

// A pool that is shared hands its resources out in turn and keeps them from nobody:
// a rotation in which a resource may still be told to rest.
func ExamplePoolConfig_shared() {
	pools, done := open(allocator.Config{})
	defer done()
	mirrors := keys(pools, "mirrors", allocator.PoolConfig[string]{Shared: true}, "north", "south", "west")

	ctx := context.Background()
	for range 2 {
		fmt.Println(allocate(mirrors, nil).Value())
	}
	if err := mirrors.Rest(ctx, "west", 1<<40, "out of order"); err != nil {
		panic(err)
	}
	for range 2 {
		fmt.Println(allocate(mirrors, nil).Value())
	}
	// Output:
	// north
	// south
	// north
	// south
}
