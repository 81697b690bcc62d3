package harness

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/berth-go/berth/internal/testkit/lag"
)

// Main runs the tests of a package, ends what they share, at last the server of [Shared], and
// fails if a goroutine is left over. It is for TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
func Main(m *testing.M, ends ...func() error) int {
	code := m.Run()
	ends = append(ends, func() error { return os.RemoveAll(programs) })
	for _, end := range ends {
		if err := end(); err != nil {
			fmt.Fprintf(os.Stderr, "ending what the tests share: %v\n", err)
			code = max(code, 1)
		}
	}
	if err := shared.end(); err != nil {
		fmt.Fprintf(os.Stderr, "ending the shared Redis: %v\n", err)
		code = max(code, 1)
	}
	if code != 0 {
		return code // leaks of failed tests tell nothing
	}
	if err := goleak.Find(leftByLibraries()...); err != nil {
		fmt.Fprintf(os.Stderr, "goroutines left after the tests: %v\n", err)
		return 1
	}
	return 0
}

// leftByLibraries names what is nobody's leak here. testcontainers keeps idle
// connections to Docker. A cluster client of rueidis leaves some that sleep up to 5 s,
// to close connections that it no longer needs or to look at the cluster again. The
// timer of scriptkit's attempts does nothing but close a channel, in a goroutine that may
// be seen when it is due.
func leftByLibraries() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction(lag.Goroutine),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreTopFunction("github.com/berth-go/berth/pkg/scriptkit.(*Runner).limit.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
	}
}
