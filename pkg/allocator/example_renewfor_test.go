package allocator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
)

// Work that turns out to be long asks for a longer lease; a shorter one takes no time away.
func ExampleAllocation_RenewFor() {
	server, err := embedded.Start()
	needsRenewing(err)
	defer server.Close()
	redis, err := server.Client()
	needsRenewing(err)
	defer redis.Close()
	ctx := context.Background()
	n, err := node.New(redis, node.Config{})
	needsRenewing(err)
	defer func() { _ = n.Close(ctx) }()
	sessions := allocator.New(n, "sessions", allocator.Config[string]{})
	_, err = sessions.Add(ctx, []string{"a", "b", "c"}, nil)
	needsRenewing(err)

	session, err := sessions.Allocate(ctx, &allocator.AllocateOptions{NoRenew: true, Lease: time.Minute})
	needsRenewing(err)
	fmt.Println(session.RenewFor(ctx, time.Hour), session.Lease(), session.Left() > 50*time.Minute)
	fmt.Println(session.RenewFor(ctx, time.Second), session.Lease(), session.Left() > 50*time.Minute)
	// Output:
	// <nil> 1h0m0s true
	// <nil> 1s true
}

// needsRenewing ends the example where something has failed.
func needsRenewing(err error) {
	if err != nil {
		panic(err)
	}
}
