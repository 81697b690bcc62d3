package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/internal/testkit/link"
)

// engine is what runs a private server. Its methods are called by one goroutine
// at a time.
type engine interface {
	// addr is host:port, the same through every restart.
	addr() string
	// pid is the process id on this machine, 0 when there is none to signal.
	pid() int
	// kill ends the server at once, as SIGKILL does, and returns when it is gone.
	kill() error
	// start runs the server again after kill, and returns when it answers.
	start() error
	// freeze and thaw are SIGSTOP and SIGCONT.
	freeze() error
	thaw() error
	// remove ends the server for good and leaves nothing behind.
	remove() error
}

// Server is a Redis for tests.
type Server struct {
	// Addr is host:port.
	Addr string

	url     string
	options rueidis.ClientOption
	engine  engine // nil for a server that is not ours to stop
}

// Redis returns a server for this test alone, or the one that BERTH_TEST_REDIS
// names. It fails the test if none can be had.
func Redis(t testing.TB) *Server {
	t.Helper()
	if s := external(t); s != nil {
		return s
	}
	return private(t, containerFirst())
}

// Start returns a server for this test alone, with further settings as on the
// command line of redis-server: "--maxmemory", "2mb". It never returns the
// server that BERTH_TEST_REDIS names. A process is preferred to a container,
// because it can be signalled and starts sooner.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return private(t, processFirst(), args...)
}

// Shared returns one server for all tests of the binary, for tests that keep to
// a namespace of their own; see [Namespace]. [Main] ends it.
func Shared(t testing.TB) *Server {
	t.Helper()
	if s := external(t); s != nil {
		return s
	}
	s, err := shared.get()
	if err != nil {
		t.Fatalf("no shared Redis for the tests: %v", err)
	}
	return s
}

// Run is Start for a program that is no test. What it returns beside the server ends it.
func Run(args ...string) (s *Server, end func() error, err error) {
	if s, err = build(processFirst(), args); err != nil {
		return nil, nil, err
	}
	return s, s.engine.remove, nil
}

// Private says whether the server is this test's own (or, from Shared, this test
// binary's), so that it may be flushed, configured, stopped and killed.
func (s *Server) Private() bool { return s.engine != nil }

// PID is the id of the server's process, or 0 if the server runs in a container
// or is not ours.
func (s *Server) PID() int {
	if s.engine == nil {
		return 0
	}
	return s.engine.pid()
}

// URL is the address as redis://host:port, for programs that are started by a
// test.
func (s *Server) URL() string { return s.url }

// Client returns a client of this server alone, also of one of a Cluster, closed when
// the test ends. Each edit may change the options first.
func (s *Server) Client(t testing.TB, edits ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	options := s.options
	options.DisableCache = true // Berth reads nothing that could be cached
	options.Dialer.Timeout = dialLimit
	link.Slim(&options)
	// Of a server of a Cluster it would be a client of the Cluster, and send what has no
	// key to any of its servers.
	options.ForceSingleClient = true
	for _, edit := range edits {
		edit(&options)
	}
	client, err := rueidis.NewClient(options)
	if err != nil {
		t.Fatalf("a client of the Redis at %s: %v", s.Addr, err)
	}
	t.Cleanup(client.Close)
	return client
}

// Kill ends the server at once, as SIGKILL does. Restart brings it back.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.must(t, "kill", engine.kill)
}

// Restart kills the server if it runs, and starts it anew on the same address
// with the same settings. Nothing that was stored survives.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.must(t, "restart", func(e engine) error {
		if err := e.kill(); err != nil {
			return err
		}
		return e.start()
	})
}

// Snapshot has the server write down what is stored; Restore brings it back.
func (s *Server) Snapshot(t testing.TB) {
	t.Helper()
	until(t, "a snapshot of "+s.Addr, func(ctx context.Context) error { return order(ctx, s, "SAVE") })
	s.must(t, "keep the snapshot of", func(e engine) error {
		p, ok := e.(*process)
		if !ok {
			return errors.New("it is no process")
		}
		return p.keepSnapshot()
	})
}

// Restore kills the server if it runs, and starts it anew with what was stored at the
// time of the last Snapshot. What has been stored since is lost.
func (s *Server) Restore(t testing.TB) {
	t.Helper()
	s.must(t, "restore", func(e engine) error {
		p, ok := e.(*process)
		if !ok {
			return errors.New("it is no process")
		}
		return p.restore()
	})
}

// Stop halts the server, as SIGSTOP does: connections stay open, nothing is
// answered. Cont lets it go on.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.must(t, "stop", engine.freeze)
}

// Cont lets a stopped server go on.
func (s *Server) Cont(t testing.TB) {
	t.Helper()
	s.must(t, "continue", engine.thaw)
}

func (s *Server) must(t testing.TB, verb string, do func(engine) error) {
	t.Helper()
	if s.engine == nil {
		t.Fatalf("cannot %s the Redis at %s: BERTH_TEST_REDIS is shared; use harness.Start", verb, s.Addr)
	}
	if err := do(s.engine); err != nil {
		t.Fatalf("%s the Redis at %s: %v", verb, s.Addr, err)
	}
}

// external returns the server that BERTH_TEST_REDIS names, or nil.
func external(t testing.TB) *Server {
	t.Helper()
	url := os.Getenv("BERTH_TEST_REDIS")
	if url == "" {
		return nil
	}
	s, err := parse(url)
	if err != nil {
		t.Fatalf("BERTH_TEST_REDIS: %v", err)
	}
	return s
}

// private starts a server that ends with the test.
func private(t testing.TB, makers []maker, args ...string) *Server {
	t.Helper()
	s, err := build(makers, args)
	if err != nil {
		t.Fatalf("no Redis for the test: %v", err)
	}
	t.Cleanup(func() {
		if err := s.engine.remove(); err != nil {
			t.Errorf("ending the Redis at %s: %v", s.Addr, err)
		}
	})
	return s
}

// A maker starts a server with the given settings.
type maker struct {
	name string
	make func(args []string) (engine, error)
}

func containerFirst() []maker {
	return []maker{{"a container", newContainer}, {"redis-server", newProcess}}
}

func processFirst() []maker {
	return []maker{{"redis-server", newProcess}, {"a container", newContainer}}
}

// build takes the first server that can be had, and says of each why not.
func build(makers []maker, args []string) (*Server, error) {
	var why []error
	for _, m := range makers {
		e, err := m.make(args)
		if err != nil {
			why = append(why, fmt.Errorf("%s: %w", m.name, err))
			continue
		}
		s, err := parse(e.addr())
		if err != nil {
			return nil, errors.Join(err, e.remove())
		}
		s.engine = e
		return s, nil
	}
	return nil, errors.Join(append(why, errors.New("set BERTH_TEST_REDIS, or run `make setup`"))...)
}

// shared is the server that all tests of a binary may use. A test binary has no
// better place for it than a package variable.
var shared sharedServer

type sharedServer struct {
	mu     sync.Mutex
	server *Server // guarded by mu; nil until it is first wanted
	err    error   // guarded by mu; a server that could not be had is not tried again
}

func (s *sharedServer) get() (*Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil && s.err == nil {
		s.server, s.err = build(containerFirst(), nil)
	}
	return s.server, s.err
}

func (s *sharedServer) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return nil
	}
	err := s.server.engine.remove()
	s.server = nil
	return err
}
