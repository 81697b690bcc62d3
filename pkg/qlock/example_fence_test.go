package qlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/qlock"
)

// What a lock protects takes the fence with each write, and refuses smaller ones:
// then a holder that was stopped past its lease, and does not know it yet, can do
// no harm. Here it is a process that owns the resource; package fence has guards
// for others.
func ExampleLock_Fence() {
	locks, done := open(qlock.Config{})
	defer done()

	ctx := context.Background()
	var guard fence.Memory
	write := func(number int64, text string) error {
		return guard.Do(ctx, "books", number, func() error {
			fmt.Println("written:", text)
			return nil
		})
	}
	old, err := locks.Lock(ctx, "books", &qlock.LockOptions{NoRenew: true, Lease: 2 * time.Second})
	if err != nil {
		panic(err)
	}
	fmt.Println(write(old.Fence(), "first"))

	// The next one waits until the lease has ended. Under Do the fence is in ctx.
	err = locks.Do(ctx, "books", nil, func(ctx context.Context) error {
		return write(locks.Fence(ctx, "books"), "second")
	})
	fmt.Println(err)

	err = write(old.Fence(), "late")
	fmt.Println("refused:", errors.Is(err, fence.ErrStale), errors.Is(old.Err(), berth.ErrExpired))
	// Output:
	// written: first
	// <nil>
	// written: second
	// <nil>
	// refused: true true
}
