package berthtest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/node"
)

// testLateReplies would be TestLateReplies in your own tests.
func testLateReplies(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, ctx := berthtest.New(t), context.Background()
		proxies := allocator.New(server.Node(node.Config{}), "proxies", allocator.Config[string]{})
		_, _ = proxies.Add(ctx, []string{"10.0.0.1:3128"}, nil)
		server.DelayReplies(500 * time.Millisecond)
		began := time.Now()
		proxy, err := proxies.Allocate(ctx, nil)
		if took := time.Since(began); err != nil || took != 500*time.Millisecond || proxy.Waited() != took {
			t.Fatal(took, err)
		}
	})
}

func ExampleServer_DelayReplies() {
	// A server belongs to a test, and so this example is one: see
	// testLateReplies.
	_ = testLateReplies
}
