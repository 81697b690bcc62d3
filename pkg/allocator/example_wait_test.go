package allocator_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
)

// enter waits for a licence, and prints how the wait ended.
func enter(ctx context.Context, licences *allocator.Pool[string], opts *allocator.AllocateOptions) {
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

// Wait in line for a resource, first come, first served. A wait ends with the grant,
// with MaxWait or with the context; TryAllocate does not wait.
func ExamplePool_Allocate_wait() {
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
	licences := allocator.New(n, "licences", allocator.Config[string]{})
	if _, err := licences.Add(ctx, []string{"ABC-123"}, nil); err != nil {
		panic(err)
	}

	first, err := licences.Allocate(ctx, nil)
	if err != nil {
		panic(err)
	}
	_, err = licences.TryAllocate(ctx, nil)
	fmt.Println(errors.Is(err, berth.ErrBusy))
	enter(ctx, licences, &allocator.AllocateOptions{MaxWait: 3 * time.Second})

	leaving, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("the service shuts down"))
	enter(leaving, licences, nil)

	var waiting sync.WaitGroup
	waiting.Go(func() { enter(ctx, licences, nil) })
	fmt.Println(first.Release(ctx))
	waiting.Wait()
	// Unordered output:
	// true
	// others have them all
	// left: the service shuts down
	// <nil>
	// has ABC-123
}
