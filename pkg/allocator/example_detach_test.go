package allocator_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
)

// Hand a resource from one process to another, without giving it back in between: a
// request takes an account, a job that runs later goes on with it.
func ExamplePool_Resume() {
	server, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	front, frontDone := connect(server, allocator.Config{})
	worker, workerDone := connect(server, allocator.Config{})
	defer workerDone()

	ctx := context.Background()
	account := allocate(keys(front, "accounts", allocator.PoolConfig[string]{}, "anna"), nil)
	token, err := account.Detach(ctx)
	if err != nil {
		panic(err)
	}
	frontDone() // Close keeps what is detached
	message := token.String()

	// In the other process, within the lease:
	accounts := keys(worker, "accounts", allocator.PoolConfig[string]{})
	var received berth.Token
	if err := received.UnmarshalText([]byte(message)); err != nil {
		panic(err)
	}
	resumed, err := accounts.Resume(ctx, received)
	if err != nil {
		panic(err)
	}
	fmt.Println(resumed.Value(), resumed.Fence() == account.Fence())
	fmt.Println(resumed.Release(ctx))

	_, err = accounts.Resume(ctx, received)
	fmt.Println(errors.Is(err, berth.ErrNotHeld))
	// Output:
	// anna true
	// <nil>
	// true
}
