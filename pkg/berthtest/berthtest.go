package berthtest

import (
	"testing"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/redis/rueidis"
)

// Redis returns a client of an embedded server of its own, empty and without a
// socket. Both end with the test, without a goroutine left behind. If one of
// them does not start, the test ends with a fatal error.
func Redis(t testing.TB) rueidis.Client {
	t.Helper()
	server, err := embedded.Start()
	if err != nil {
		t.Fatalf("berthtest: %v", err)
	}
	t.Cleanup(server.Close)
	client, err := server.Client()
	if err != nil {
		t.Fatalf("berthtest: %v", err)
	}
	t.Cleanup(client.Close) // runs before the server's
	return client
}
