package qlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/qlock"
)

// Hand a lock from one process to another, without giving it back in between: a
// request takes it, a job that runs later goes on with it.
func ExampleLock_Detach() {
	server, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	front, frontDone := connect(server, qlock.Config{})
	worker, workerDone := connect(server, qlock.Config{})
	defer workerDone()

	ctx := context.Background()
	lock, err := front.Lock(ctx, "export:7", nil)
	if err != nil {
		panic(err)
	}
	token, err := lock.Detach(ctx)
	if err != nil {
		panic(err)
	}
	frontDone() // Close keeps what is detached
	message := token.String()

	// In the other process, within the lease:
	var received berth.Token
	if err := received.UnmarshalText([]byte(message)); err != nil {
		panic(err)
	}
	resumed, err := worker.Resume(ctx, received)
	if err != nil {
		panic(err)
	}
	fmt.Println(resumed.Process(), resumed.ID() == lock.ID(), resumed.Fence() == lock.Fence())
	fmt.Println(resumed.Release(ctx))

	_, err = worker.Resume(ctx, received)
	fmt.Println(errors.Is(err, berth.ErrNotHeld))
	// Output:
	// resumed true true
	// <nil>
	// true
}
