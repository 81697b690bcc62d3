package qlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
)

// Take several locks or none. The order of the names does not matter: all callers
// lock them in the same one, so that none waits for another in a circle.
func ExampleClient_LockAll() {
	locks, done := open(qlock.Config{})
	defer done()

	ctx := context.Background()
	set, err := locks.LockAll(ctx, []string{"account:ben", "account:anna", "account:ben"}, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(set.Names())
	for name, fence := range set.Fences() {
		if fence == 0 {
			fmt.Println(name, "has no fence")
		}
	}

	// Somebody else gets neither while one of them is held.
	other := []string{"account:ben", "account:alma"}
	_, err = locks.LockAll(ctx, other, &qlock.LockOptions{MaxWait: time.Second})
	var refused *berth.AcquireError
	if errors.As(err, &refused) {
		fmt.Println(refused.Name, "not acquired:", refused.Reason)
	}
	stats, err := locks.Operator().Stats(ctx, "account:alma")
	fmt.Println("alma is locked:", stats.Held(), err)

	fmt.Println(set.Release(ctx))
	// Output:
	// [account:anna account:ben]
	// account:ben not acquired: timed out
	// alma is locked: false <nil>
	// <nil>
}
