package qlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// books stand for what a lock protects. The guard refuses fences that are smaller
// than the greatest one it has seen: a holder that was stopped past its lease, and
// does not know it yet, can do no harm.
type books struct{ guard fence.Memory }

func (b *books) write(ctx context.Context, number int64, text string) error {
	return b.guard.Do(ctx, "books", number, func() error {
		fmt.Println("written:", text)
		return nil
	})
}

// Pass the fence to whatever the lock protects, and refuse smaller ones there.
func ExampleLock_Fence() {
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
	locks := qlock.New(n, qlock.Config{})

	var shared books
	old, err := locks.Lock(ctx, "books", &qlock.LockOptions{NoRenew: true, Lease: 3 * time.Second})
	if err != nil {
		panic(err)
	}
	fmt.Println(shared.write(ctx, old.Fence(), "first"))

	// Do waits until that lease has ended. Under Do the fence is in ctx.
	err = locks.Do(ctx, "books", nil, func(ctx context.Context) error {
		return shared.write(ctx, locks.Fence(ctx, "books"), "second")
	})
	fmt.Println(err)

	err = shared.write(ctx, old.Fence(), "late")
	fmt.Println("refused:", errors.Is(err, fence.ErrStale))
	// Output:
	// written: first
	// <nil>
	// written: second
	// <nil>
	// refused: true
}
