package berthtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// testOneOfTwoIsLost would be TestOneOfTwoIsLost in your own tests.
func testOneOfTwoIsLost(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, ctx := berthtest.New(t), context.Background()
		gpus := semaphore.New(server.Node(node.Config{}), "gpu", 2, semaphore.Config{})
		lost, _ := gpus.Acquire(ctx, nil)
		kept, _ := gpus.Acquire(ctx, nil)
		server.Lose(lost)
		if !errors.Is(lost.Err(), berth.ErrLost) || kept.Err() != nil {
			t.Fatal(lost.Err(), kept.Err())
		}
	})
}

func ExampleServer_Lose() {
	// A server belongs to a test, and so this example is one: see
	// testOneOfTwoIsLost.
	_ = testOneOfTwoIsLost
}
