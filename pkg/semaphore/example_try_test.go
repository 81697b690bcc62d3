package semaphore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// reserve takes gigabytes of memory if they are free, and says why if they are not.
func reserve(ctx context.Context, memory *semaphore.Semaphore, gigabytes int) {
	_, err := memory.TryAcquire(ctx, &semaphore.AcquireOptions{Weight: gigabytes})
	var refused *berth.AcquireError
	switch {
	case err == nil:
		fmt.Println(gigabytes, "GB reserved")
	case errors.Is(err, berth.ErrUnavailable): // before the reason, which is "failed" then
		fmt.Println("the server did not answer:", err)
	case errors.As(err, &refused):
		fmt.Printf("%d GB refused, %s: %d of %d held, %d waiting\n",
			gigabytes, refused.Reason, refused.Held, refused.Capacity, refused.Waiting)
	default:
		fmt.Println("the call was refused:", err)
	}
}

// TryAcquire never waits in line. A permit may take more than one place of the capacity.
func ExampleSemaphore_TryAcquire() {
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
	memory := semaphore.New(n, "memory", 64, semaphore.Config{}) // GB
	for _, gigabytes := range []int{40, 16, 16, 100} {
		reserve(ctx, memory, gigabytes)
	}
	// Output:
	// 40 GB reserved
	// 16 GB reserved
	// 16 GB refused, full: 56 of 64 held, 0 waiting
	// 100 GB refused, too heavy: 56 of 64 held, 0 waiting
}
