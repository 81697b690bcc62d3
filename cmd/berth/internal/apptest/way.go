package apptest

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/embedded"
)

// Way leads to a server, until it is blocked: connections stay, and nothing comes
// through them any more.
type Way struct {
	URL  string
	gate chan struct{} // closed when blocked
	held sync.RWMutex  // locked while all that comes is kept back

	mu    sync.Mutex
	conns []net.Conn // guarded by mu
	done  bool       // guarded by mu: no more connections are accepted
	wait  sync.WaitGroup
}

// WayTo returns a way to the server with a URL of its own.
func WayTo(t *testing.T, s *embedded.Server) *Way {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	to, err := url.Parse(s.URL())
	require.NoError(t, err)
	from := *to
	from.Host = listener.Addr().String()
	w := &Way{URL: from.String(), gate: make(chan struct{})}
	w.wait.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			w.join(conn, to.Host)
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		w.mu.Lock()
		w.done = true
		for _, conn := range w.conns {
			_ = conn.Close()
		}
		w.mu.Unlock()
		w.wait.Wait()
	})
	return w
}

// Block stops all data.
func (w *Way) Block() { close(w.gate) }

// Used reports whether somebody has come this way.
func (w *Way) Used() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.conns) > 0
}

// Hold keeps back what comes, in both directions, until release lets it on.
func (w *Way) Hold() { w.held.Lock() }

// Release lets through what was kept back.
func (w *Way) Release() { w.held.Unlock() }

// join leads a connection to an address.
func (w *Way) join(near net.Conn, address string) {
	far, err := net.Dial("tcp", address)
	if err != nil {
		_ = near.Close()
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, near, far)
	if w.done {
		_ = near.Close()
		_ = far.Close()
	}
	for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
		w.wait.Go(func() { _, _ = io.Copy(gated{pair[1], w}, pair[0]) })
	}
}

// gated drops what is written once the gate is closed.
type gated struct {
	io.Writer
	way *Way
}

func (g gated) Write(p []byte) (int, error) {
	g.way.held.RLock()
	defer g.way.held.RUnlock()
	select {
	case <-g.way.gate:
		return len(p), nil
	default:
		return g.Writer.Write(p)
	}
}
