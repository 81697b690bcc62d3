package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// ledger stands for what a permit protects. It keeps the highest fence that it has
// seen and refuses lower ones: a holder that was stopped past its lease, and does
// not know it yet, can do no harm.
type ledger struct{ fence int64 }

func (l *ledger) write(fence int64, text string) error {
	if fence < l.fence {
		return errors.New("refused: an older holder")
	}
	l.fence = fence
	fmt.Println("written:", text)
	return nil
}

// Pass the fence to whatever the permit protects, and refuse smaller ones there.
func ExamplePermit_Fence() {
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
	books := semaphore.New(n, "books", 1, semaphore.Config{})

	var shared ledger
	old, err := books.Acquire(ctx, &semaphore.AcquireOptions{NoRenew: true, Lease: 3 * time.Second})
	if err != nil {
		panic(err)
	}
	fmt.Println(shared.write(old.Fence(), "first"))

	// The next holder waits until the lease has ended. Under Do, ctx has the fence.
	err = books.Do(ctx, nil, func(ctx context.Context) error {
		return shared.write(books.Fence(ctx), "second")
	})
	fmt.Println(err)

	fmt.Println(shared.write(old.Fence(), "late"))
	fmt.Println(errors.Is(old.Err(), berth.ErrExpired))
	// Output:
	// written: first
	// <nil>
	// written: second
	// <nil>
	// refused: an older holder
	// true
}
