package berthtest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/qlock"
)

// testNightlyJob would be TestNightlyJob in your own tests: the node renews the lock for an hour.
func testNightlyJob(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		locks := qlock.New(berthtest.Node(t), qlock.Config{})
		err := locks.Do(context.Background(), "nightly", nil, func(ctx context.Context) error {
			time.Sleep(61 * time.Minute) // takes no time
			return ctx.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func ExampleNode() {
	// A node belongs to a test, and so this example is one: see testNightlyJob.
	_ = testNightlyJob
}
