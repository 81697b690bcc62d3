package berthtest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-go/berth/pkg/berthtest"
)

// testSessionEnds would be TestSessionEnds in your own tests.
func testSessionEnds(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		redis := berthtest.Redis(t)
		ctx := context.Background()
		set := redis.B().Set().Key("session").Value("alice").Ex(61 * time.Minute).Build()
		if err := redis.Do(ctx, set).Error(); err != nil {
			t.Fatal(err)
		}
		get := redis.B().Get().Key("session").Build().Pin() // sent twice

		time.Sleep(61*time.Minute - time.Millisecond) // takes no time
		if who, err := redis.Do(ctx, get).ToString(); err != nil || who != "alice" {
			t.Fatalf("a millisecond before the end: %q, %v", who, err)
		}
		time.Sleep(time.Millisecond)
		if who, err := redis.Do(ctx, get).ToString(); err == nil {
			t.Fatalf("at the end: %q", who)
		}
	})
}

func ExampleRedis() {
	// A Redis belongs to a test, and so this example is one: see
	// testSessionEnds.
	_ = testSessionEnds
}
