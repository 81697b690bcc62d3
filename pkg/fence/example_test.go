package fence_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// books are what a semaphore protects. The process that keeps them checks fences.
type books struct{ guard fence.Memory }

func (b *books) write(ctx context.Context, number int64, text string) {
	err := b.guard.Do(ctx, "books", number, func() error {
		fmt.Println("written:", text)
		return nil
	})
	if errors.Is(err, fence.ErrStale) {
		fmt.Println("refused:", text)
	}
}

// A holder whose lease has ended, or whose hold an operator has ended as here, does not
// know it yet, and comes too late.
func Example() {
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
	desk := semaphore.New(n, "desk", 1, semaphore.Config{})

	var shared books
	old, err := desk.Acquire(ctx, nil)
	if err != nil {
		panic(err)
	}
	shared.write(ctx, old.Fence(), "first")
	shared.write(ctx, old.Fence(), "first again")
	if _, err := n.Operator().Release(ctx, berth.Target{Kind: keyspace.Sem, Name: "desk"}); err != nil {
		panic(err)
	}
	next, err := desk.Acquire(ctx, nil)
	if err != nil {
		panic(err)
	}
	shared.write(ctx, next.Fence(), "second")
	shared.write(ctx, old.Fence(), "late")
	// Output:
	// written: first
	// written: first again
	// written: second
	// refused: late
}
