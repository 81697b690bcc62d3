package berthhttp_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	berthhttp "github.com/berth-go/berth/contrib/http"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a server of Redis in virtual time.
type world struct {
	t      *testing.T
	server *berthtest.Server
}

// inWorld runs a test in virtual time.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		test(t, &world{t: t, server: berthtest.New(t)})
	})
}

// web is the semaphore of these tests, of another process.
func (w *world) web(capacity int) *semaphore.Semaphore {
	w.t.Helper()
	return semaphore.New(w.server.Node(node.Config{}), "web", capacity, nil)
}

// limit wraps a handler with the middleware of sem.
func (w *world) limit(sem *semaphore.Semaphore, opts *berthhttp.Options, handler http.HandlerFunc) http.Handler {
	w.t.Helper()
	limit, err := berthhttp.Limit(sem, opts)
	require.NoError(w.t, err)
	return limit(handler)
}

// get has a handler serve a request, in this goroutine.
func get(handler http.Handler) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
	return answer
}

// begin has a handler serve a request in the background, and lets everything settle.
func begin(handler http.Handler) <-chan *httptest.ResponseRecorder {
	answer := make(chan *httptest.ResponseRecorder, 1)
	go func() { answer <- get(handler) }()
	synctest.Wait()
	return answer
}

// until serves for as long as a channel is open, or the request's context.
func until(done <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-done:
		case <-r.Context().Done():
			http.Error(w, context.Cause(r.Context()).Error(), http.StatusServiceUnavailable)
		}
	}
}

// serve has an HTTP server of its own serve a handler in memory, and returns a way to
// connect to it. Both end with the test.
func (w *world) serve(handler http.Handler) (dial func() net.Conn) {
	w.t.Helper()
	listener := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(listener) }()
	w.t.Cleanup(func() {
		require.NoError(w.t, server.Close())
		require.ErrorIs(w.t, <-stopped, http.ErrServerClosed)
	})
	return func() net.Conn {
		w.t.Helper()
		near, far := net.Pipe()
		listener.conns <- far
		w.t.Cleanup(func() { require.NoError(w.t, near.Close()) })
		return near
	}
}

// pipes is a listener without a socket: a socket would stop virtual time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
