package berthtest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// testHang would be TestHang in your own tests.
func testHang(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, ctx := berthtest.New(t), context.Background()
		locks := qlock.New(server.Node(node.Config{}), qlock.Config{Lease: 10 * time.Second})
		lock, _ := locks.Lock(ctx, "order:7", nil)
		server.Hang(5 * time.Second) // less than the lease: its renewal is late, and in time
		time.Sleep(time.Minute)
		if err := lock.Err(); err != nil {
			t.Fatal(err)
		}
	})
}

func ExampleServer_Hang() {
	// A server belongs to a test, and so this example is one: see testHang.
	_ = testHang
}
