package harness

import (
	"testing"

	"github.com/berth-go/berth/pkg/embedded"
)

// Embedded is the embedded server, which runs in this process and listens.
func Embedded(t testing.TB) *Deployment {
	t.Helper()
	mini, err := embedded.StartListening("127.0.0.1:0")
	if err != nil {
		t.Fatalf("no embedded server for the test: %v", err)
	}
	t.Cleanup(mini.Close)
	s, err := parse(mini.URL())
	if err != nil {
		t.Fatalf("the embedded server is at %s: %v", mini.URL(), err)
	}
	return alone("embedded", s)
}
