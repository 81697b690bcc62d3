package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// MaxWait and the end of the caller's context bound a wait.
func ExampleSemaphore_Acquire_wait() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	printer := semaphore.New(n, "printer", 1, nil)
	_, err := printer.Acquire(ctx, nil)
	check(err)

	// enter waits for three seconds at the most, and tells apart the ways in which a wait ends.
	enter := func(ctx context.Context) {
		permit, err := printer.Acquire(ctx, &semaphore.AcquireOptions{MaxWait: 3 * time.Second})
		switch {
		case err == nil:
			fmt.Println("acquired:", permit.Release(ctx))
		case ctx.Err() != nil:
			fmt.Println("left:", context.Cause(ctx))
		case errors.Is(err, berth.ErrBusy):
			fmt.Println("others were in the way for too long")
		default:
			fmt.Println("not acquired:", err)
		}
	}
	enter(ctx)
	leaving, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("the service shuts down"))
	enter(leaving)
	// Output:
	// others were in the way for too long
	// left: the service shuts down
}

// TryAcquire never waits in line. A permit may take more than one place of the capacity.
func ExampleSemaphore_TryAcquire() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	memory := semaphore.New(n, "memory", 64, nil) // GB
	for _, gigabytes := range []int{40, 16, 16, 100} {
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
	// Output:
	// 40 GB reserved
	// 16 GB reserved
	// 16 GB refused, full: 56 of 64 held, 0 waiting
	// 100 GB refused, too heavy: 56 of 64 held, 0 waiting
}

// Do runs a function under a permit. The context of the function ends with the
// caller's context or with the permit, whichever comes first.
func ExampleSemaphore_Do() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	videos := semaphore.New(n, "videos", 2, nil)

	// convert works until it is done or its context ends.
	convert := func(ctx context.Context, work time.Duration) error {
		select {
		case <-time.After(work):
			fmt.Println("converted")
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	err := videos.Do(ctx, nil, func(ctx context.Context) error { return convert(ctx, time.Millisecond) })
	fmt.Println(err)

	// MaxHold bounds the work.
	opts := &semaphore.AcquireOptions{MaxHold: 2 * time.Second}
	err = videos.Do(ctx, opts, func(ctx context.Context) error { return convert(ctx, time.Hour) })
	fmt.Println(errors.Is(err, berth.ErrExpired))
	// Output:
	// converted
	// <nil>
	// true
}

// A field that a call leaves zero comes from the defaults of the semaphore, then from
// the built-in ones.
func ExampleConfig_defaults() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	memory := semaphore.New(n, "memory", 64, &semaphore.Config{
		Defaults: semaphore.AcquireOptions{Weight: 8, Lease: 30 * time.Second, MaxWait: time.Minute},
	})
	for _, call := range []*semaphore.AcquireOptions{nil, {Weight: 2}, {NoDefaults: true}} {
		permit, err := memory.Acquire(ctx, call)
		check(err)
		fmt.Println("weight", permit.Weight(), "lease", permit.Lease())
		check(permit.Release(ctx))
	}
	// Output:
	// weight 8 lease 30s
	// weight 2 lease 30s
	// weight 1 lease 10s
}

// Hand a permit to another process without giving it back in between: a request
// takes it, and a job that runs later goes on with it.
func ExamplePermit_Detach() {
	ctx, redis, end := newRedis()
	defer end()
	n, err := node.New(redis, node.Config{})
	check(err)
	defer func() { _ = n.Close(ctx) }()
	permit, err := semaphore.New(n, "licences", 1, nil).Acquire(ctx, nil)
	check(err)
	token, err := permit.Detach(ctx)
	check(err)
	message, err := token.MarshalText()
	check(err)

	// finish is what another process does with the token, within the permit's lease.
	finish := func() error {
		n, err := node.New(redis, node.Config{})
		check(err)
		defer func() { _ = n.Close(ctx) }()
		var token berth.Token
		check(token.UnmarshalText(message))
		permit, err := semaphore.New(n, "licences", 1, nil).Resume(ctx, token)
		if err != nil {
			return err // berth.ErrNotHeld: too late, or somebody else has resumed it
		}
		fmt.Println("resumed:", permit.Name())
		return permit.Release(ctx)
	}
	fmt.Println(finish())
	// Output:
	// resumed: licences
	// <nil>
}

// Pass the fence to whatever the permit protects, and refuse smaller ones there.
func ExamplePermit_Fence() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	books := semaphore.New(n, "books", 1, nil)

	// A ledger stands for what a permit protects. It keeps the highest fence that it has
	// seen and refuses lower ones: a holder that was stopped past its lease, and does
	// not know it yet, can do no harm.
	var highest int64
	write := func(fence int64, text string) error {
		if fence < highest {
			return errors.New("refused: an older holder")
		}
		highest = fence
		fmt.Println("written:", text)
		return nil
	}
	old, err := books.Acquire(ctx, &semaphore.AcquireOptions{NoRenew: true, Lease: 3 * time.Second})
	check(err)
	fmt.Println(write(old.Fence(), "first"))

	// The next holder waits until the lease has ended. Under Do, ctx has the fence.
	err = books.Do(ctx, nil, func(ctx context.Context) error {
		return write(books.Fence(ctx), "second")
	})
	fmt.Println(err)

	fmt.Println(write(old.Fence(), "late"))
	fmt.Println(errors.Is(old.Err(), berth.ErrExpired))
	// Output:
	// written: first
	// <nil>
	// written: second
	// <nil>
	// refused: an older holder
	// true
}
