package berthtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// testFailover would be TestFailover in your own tests: the new server has never
// heard of the lock, whose holder learns of that, and whose fences rise all the same.
func testFailover(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, ctx := berthtest.New(t), context.Background()
		locks := qlock.New(server.Node(node.Config{}), qlock.Config{})
		before := server.Snapshot()
		lost, _ := locks.Lock(ctx, "order:7", nil)
		server.Failover(before)
		<-lost.Done() // within a third of its lease
		again, err := locks.Lock(ctx, "order:7", nil)
		if err != nil || !errors.Is(lost.Err(), berth.ErrLost) || again.Fence() <= lost.Fence() {
			t.Fatal(err, lost.Err())
		}
	})
}

func ExampleServer_Failover() {
	// A server belongs to a test, and so this example is one: see testFailover.
	_ = testFailover
}
