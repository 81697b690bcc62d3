package qlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// A wait ends with MaxWait, with the attempts, or with the context.
func ExampleLocks_Lock_wait() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	locks := qlock.New(n, nil)
	_, err := locks.Lock(ctx, "door", nil)
	check(err)

	// enter waits for the door, and prints how the wait ended.
	enter := func(ctx context.Context, opts *qlock.LockOptions) {
		_, err := locks.Lock(ctx, "door", opts)
		var refused *berth.AcquireError
		switch {
		case errors.Is(err, context.Canceled):
			fmt.Println("left:", context.Cause(ctx))
		case errors.As(err, &refused) && errors.Is(err, berth.ErrBusy):
			fmt.Println("others hold it:", refused.Reason)
		case errors.Is(err, berth.ErrNotAcquired):
			fmt.Println("not acquired:", err)
		}
	}
	enter(ctx, &qlock.LockOptions{MaxWait: 3 * time.Second})

	// Three attempts, 2 s apart. Nothing polls: the claim stands in line for the
	// time that the attempts would take.
	attempts := qlock.Attempts{Max: 3, Delay: 2 * time.Second, Jitter: -1}
	enter(ctx, &qlock.LockOptions{Attempts: attempts})

	leaving, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("the service shuts down"))
	enter(leaving, nil)
	// Output:
	// others hold it: timed out
	// others hold it: attempts used up
	// left: the service shuts down
}

// TryLock takes the lock if the lock is free. If not, the error names the holders.
func ExampleLocks_TryLock() {
	ctx, n, end := newNode(node.Config{Label: "host-1/nightly/4711"})
	defer end()
	locks := qlock.New(n, nil)

	running, err := locks.TryLock(ctx, "nightly", nil)
	check(err)
	_, err = locks.TryLock(ctx, "nightly", &qlock.LockOptions{DetailedErrors: true})
	var refused *berth.AcquireError
	switch {
	case errors.As(err, &refused) && errors.Is(err, berth.ErrBusy):
		fmt.Println(refused.Reason, "by", refused.Holders[0].Label)
	case err != nil:
		fmt.Println("the server was not reached, or refuses:", err)
	}
	fmt.Println(running.Release(ctx))
	// Output:
	// held by host-1/nightly/4711
	// <nil>
}

// Do runs a function under a lock. The context of the function ends with the
// caller's context or with the lock, whichever comes first.
func ExampleLocks_Do() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	locks := qlock.New(n, nil)

	// export works until it is done or its context ends.
	export := func(ctx context.Context, work time.Duration) error {
		select {
		case <-time.After(work):
			fmt.Println("exported")
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	err := locks.Do(ctx, "report", nil, func(ctx context.Context) error { return export(ctx, time.Millisecond) })
	fmt.Println(err)

	// With NoRenew the lock ends with its lease, and Do returns ErrExpired.
	opts := &qlock.LockOptions{NoRenew: true, Lease: time.Second}
	err = locks.Do(ctx, "report", opts, func(ctx context.Context) error { return export(ctx, time.Hour) })
	fmt.Println(errors.Is(err, berth.ErrExpired))
	// Output:
	// exported
	// <nil>
	// true
}

// LockAll takes several locks or none, and waits for those that others hold; TryLockAll does
// not wait. The order of the names does not matter: all callers lock them in the same order,
// so that no two wait for each other.
func ExampleLocks_LockAll() {
	ctx, redis, end := newRedis()
	defer end()
	n, err := node.New(redis, node.Config{})
	check(err)
	defer func() { _ = n.Close(ctx) }()
	locks := qlock.New(n, nil)

	set, err := locks.LockAll(ctx, []string{"account:ben", "account:anna"}, nil)
	check(err)
	fmt.Println("locked", set.Names(), "with", len(set.Fences()), "fences")
	_, err = locks.TryLockAll(ctx, []string{"account:ben", "account:alma"}, nil)
	var refused *berth.AcquireError
	if errors.As(err, &refused) {
		fmt.Println(refused.Name, refused.Reason)
	}
	reader, err := inspect.New(redis, inspect.Config{})
	check(err)
	alma, err := reader.Name(ctx, keyspace.Lock, "account:alma")
	fmt.Println("alma is locked:", alma.Held > 0, err)
	fmt.Println(set.Release(ctx))
	// Output:
	// locked [account:anna account:ben] with 2 fences
	// account:ben held
	// alma is locked: false <nil>
	// <nil>
}

// Conflict says what happens if the owner of a call holds the lock already. The
// owner is in the context: Do puts it there, or berth.WithOwner.
func ExampleLockOptions_conflict() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	locks := qlock.New(n, nil)

	// again locks what its owner holds already, and prints what came of it.
	again := func(ctx context.Context, opts *qlock.LockOptions) error {
		lock, err := locks.Lock(ctx, "stock", opts)
		if err != nil {
			fmt.Println(errors.Is(err, berth.ErrDeadlock), errors.Is(err, berth.ErrBusy))
			return nil
		}
		fmt.Println(lock.Via(), "with", lock.Left().Round(time.Minute), "left")
		return lock.Release(ctx)
	}
	outer := &qlock.LockOptions{NoRenew: true, Lease: 5 * time.Minute}
	err := locks.Do(ctx, "stock", outer, func(ctx context.Context) error {
		return errors.Join(
			again(ctx, nil), // the default: ErrDeadlock at once
			// Wait stands in line behind its own owner.
			again(ctx, &qlock.LockOptions{Conflict: qlock.Wait, MaxWait: 3 * time.Second}),
			again(ctx, &qlock.LockOptions{Conflict: qlock.WorkThrough}),
			// Release gives back what is left of the three minutes.
			again(ctx, &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough, Lease: 3 * time.Minute}),
			again(ctx, &qlock.LockOptions{Conflict: qlock.WorkThrough}),
		)
	})
	fmt.Println(err)
	// Output:
	// true false
	// false true
	// reentered with 5m0s left
	// reentered and extended with 8m0s left
	// reentered with 5m0s left
	// <nil>
}

// Hand a lock to another process without giving it back in between: a request
// takes it, and a job that runs later goes on with it.
func ExampleLock_Detach() {
	ctx, redis, end := newRedis()
	defer end()
	n, err := node.New(redis, node.Config{})
	check(err)
	defer func() { _ = n.Close(ctx) }()
	lock, err := qlock.New(n, nil).Lock(ctx, "export:7", nil)
	check(err)
	token, err := lock.Detach(ctx)
	check(err)
	message, err := token.MarshalText()
	check(err)

	// finish is what another process does with the token, within the lock's lease.
	finish := func() error {
		n, err := node.New(redis, node.Config{})
		check(err)
		defer func() { _ = n.Close(ctx) }()
		var token berth.Token
		check(token.UnmarshalText(message))
		lock, err := qlock.New(n, nil).Resume(ctx, token)
		if err != nil {
			return err // berth.ErrNotHeld: too late, or somebody else has resumed it
		}
		fmt.Println(lock.Via(), lock.Name())
		return lock.Release(ctx)
	}
	fmt.Println(finish())
	fmt.Println(errors.Is(finish(), berth.ErrNotHeld))
	// Output:
	// resumed export:7
	// <nil>
	// true
}

// Extend adds to the time that is left. Renew starts the lease anew and never
// shortens it.
func ExampleLock_Extend() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	lock, err := qlock.New(n, nil).Lock(ctx, "export", &qlock.LockOptions{NoRenew: true, Lease: 5 * time.Minute})
	fmt.Println("lock", lock.Left().Round(time.Minute), err)
	err = lock.Extend(ctx, 10*time.Minute)
	fmt.Println("extend", lock.Left().Round(time.Minute), err)
	err = lock.Renew(ctx)
	fmt.Println("renew", lock.Left().Round(time.Minute), err)
	// Output:
	// lock 5m0s <nil>
	// extend 15m0s <nil>
	// renew 15m0s <nil>
}

// Pass the fence to whatever the lock protects, and refuse smaller ones there.
func ExampleLock_Fence() {
	ctx, n, end := newNode(node.Config{})
	defer end()
	locks := qlock.New(n, nil)

	// The books stand for what a lock protects. Their guard refuses fences that are smaller
	// than the greatest one it has seen: a holder that was stopped past its lease, and
	// does not know it yet, can do no harm.
	var guard fence.Memory
	write := func(ctx context.Context, number int64, text string) error {
		return guard.Do(ctx, "books", number, func() error {
			fmt.Println("written:", text)
			return nil
		})
	}
	old, err := locks.Lock(ctx, "books", &qlock.LockOptions{NoRenew: true, Lease: 3 * time.Second})
	check(err)
	fmt.Println(write(ctx, old.Fence(), "first"))

	// Do waits until that lease has ended. Under Do the fence is in ctx.
	err = locks.Do(ctx, "books", nil, func(ctx context.Context) error {
		return write(ctx, locks.Fence(ctx, "books"), "second")
	})
	fmt.Println(err)

	err = write(ctx, old.Fence(), "late")
	fmt.Println("refused:", errors.Is(err, fence.ErrStale))
	// Output:
	// written: first
	// <nil>
	// written: second
	// <nil>
	// refused: true
}
