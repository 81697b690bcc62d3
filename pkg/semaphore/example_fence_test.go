package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/semaphore"
)

// ledger stands for what a permit protects. It keeps the highest fence that it
// has seen and refuses lower ones, so that a holder that was stopped past its
// lease, and does not know it yet, can do no harm.
type ledger struct{ fence int64 }

func (l *ledger) write(fence int64, text string) error {
	if fence < l.fence {
		return errors.New("an older holder: refused")
	}
	l.fence = fence
	fmt.Println("written:", text)
	return nil
}

func ExamplePermit_Fence() {
	sems, done := open(semaphore.Config{})
	defer done()
	books, err := sems.Semaphore("books", 1, nil)
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	var shared ledger
	old, err := books.Acquire(ctx, &semaphore.AcquireOptions{NoRenew: true, Lease: 2 * time.Second})
	if err != nil {
		panic(err)
	}
	fmt.Println(shared.write(old.Fence(), "first"))

	// The next one waits until the lease has ended. Under Do the fence is in ctx.
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
	// an older holder: refused
	// true
}
