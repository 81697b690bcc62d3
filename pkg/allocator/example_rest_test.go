package allocator_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
)

// sign signs in with the next account, and gives the account back.
func sign(ctx context.Context, accounts *allocator.Pool[string]) {
	account, err := accounts.TryAllocate(ctx, nil)
	if errors.Is(err, berth.ErrBusy) {
		fmt.Println("all rest")
		return
	}
	if err != nil {
		panic(err)
	}
	fmt.Println("signed in as", account.Value())
	if err := account.Release(ctx); err != nil {
		panic(err)
	}
}

// A cooldown is a rest after every hold. A rest by hand takes a resource out of turn
// until its time is up, or until a rest of 0 ends it.
func ExamplePool_Rest() {
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
	accounts := allocator.New(n, "accounts", allocator.Config[string]{Cooldown: time.Minute})
	if _, err := accounts.Add(ctx, []string{"anna", "ben", "cleo"}, nil); err != nil {
		panic(err)
	}

	fmt.Println(accounts.Rest(ctx, "ben", berth.Forever, "locked by its owner", nil))
	sign(ctx, accounts)
	sign(ctx, accounts)
	sign(ctx, accounts)
	fmt.Println(accounts.Rest(ctx, "ben", 0, "", nil))
	sign(ctx, accounts)
	fmt.Println(errors.Is(accounts.Rest(ctx, "dora", time.Hour, "", nil), berth.ErrAbsent))
	// Output:
	// <nil>
	// signed in as anna
	// signed in as cleo
	// all rest
	// <nil>
	// signed in as ben
	// true
}
