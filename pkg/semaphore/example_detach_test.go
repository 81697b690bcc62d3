package semaphore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Hand a permit from one process to another, without giving it back in between:
// a request takes it, a job that runs later goes on with it.
func ExamplePermit_Detach() {
	server, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	front, frontDone := connect(server, semaphore.Config{})
	worker, workerDone := connect(server, semaphore.Config{})
	defer workerDone()

	ctx := context.Background()
	licences, err := front.Semaphore("licences", 1, nil)
	if err != nil {
		panic(err)
	}
	permit, err := licences.Acquire(ctx, nil)
	if err != nil {
		panic(err)
	}
	token, err := permit.Detach(ctx)
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
	fmt.Println(resumed.ID() == permit.ID(), resumed.Fence() == permit.Fence())
	fmt.Println(resumed.Release(ctx))

	_, err = worker.Resume(ctx, received)
	fmt.Println(errors.Is(err, berth.ErrNotHeld))
	// Output:
	// true true
	// <nil>
	// true
}
