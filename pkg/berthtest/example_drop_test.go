package berthtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/node"
)

// testDroppedReply would be TestDroppedReply in your own tests: the call is sent
// again, and has allocated once.
func testDroppedReply(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, ctx := berthtest.New(t), context.Background()
		proxies := allocator.New(server.Node(node.Config{}), "proxies", allocator.Config[string]{})
		_, _ = proxies.Add(ctx, []string{"10.0.0.1:3128", "10.0.0.2:3128"}, nil)
		server.DropReplies(2)
		_, first := proxies.TryAllocate(ctx, nil)
		_, second := proxies.TryAllocate(ctx, nil)
		_, third := proxies.TryAllocate(ctx, nil)
		if first != nil || second != nil || !errors.Is(third, berth.ErrBusy) {
			t.Fatal(first, second, third)
		}
	})
}

func ExampleServer_DropReplies() {
	// A server belongs to a test, and so this example is one: see
	// testDroppedReply.
	_ = testDroppedReply
}
