package browser

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/console"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// lease is a wait lease that no pause of the machine ends.
const lease = 10 * time.Minute

// stage is a namespace with a console of its own.
type stage struct {
	testkit.Patient
	server  *harness.Server
	ns      string
	redis   rueidis.Client
	read    testkit.Reader
	console *httptest.Server
	reads   string                          // the name of the newest console's connections
	ends    func(ctx context.Context) error // ends it

	mu    sync.Mutex
	acted []observe.Event // guarded by mu
}

// newStage is one on the server that tests share. The configuration says what of the console differs.
func newStage(t *testing.T, cfg console.Config) *stage {
	t.Helper()
	return stageOn(t, harness.Shared(t), cfg)
}

func stageOn(t *testing.T, server *harness.Server, cfg console.Config) *stage {
	t.Helper()
	s := &stage{Patient: testkit.RealTime(t), server: server, ns: cmp.Or(cfg.Namespace, harness.Namespace(t)), redis: server.Client(t)}
	s.read = s.Reader(s.redis, s.ns)
	s.console = s.serve(cfg)
	return s
}

// serve serves a console of the stage.
func (s *stage) serve(cfg console.Config) *httptest.Server {
	s.Helper()
	s.reads = rand.Text()
	cfg.Redis, cfg.Namespace, cfg.Observer = s.server.Client(s.T, named(s.reads)), s.ns, observe.Func(s.observe)
	page, err := console.New(cfg)
	require.NoError(s, err)
	s.ends = page.Close
	served := httptest.NewServer(page)
	s.Cleanup(func() {
		require.NoError(s, page.Close(s.closing()))
		served.Close()
	})
	return served
}

// closing bounds what is done at the end of the test.
func (s *stage) closing() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	s.Cleanup(cancel)
	return ctx
}

func (s *stage) observe(e observe.Event) {
	if e.Kind != observe.Acted {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acted = append(s.acted, e)
}

// told are the events of what was done, so far.
func (s *stage) told() []observe.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]observe.Event(nil), s.acted...)
}

func (s *stage) closed(by func(context.Context) error) {
	s.Cleanup(func() { _ = by(s.closing()) })
}

// node is that of a process with that label.
func (s *stage) node(label string) *node.Node {
	s.Helper()
	n, err := node.New(s.redis, node.Config{Namespace: s.ns, Label: label, Lease: lease})
	require.NoError(s, err)
	s.closed(n.Close)
	return n
}

func (s *stage) pool(label, name string) *allocator.Pool[string] {
	s.Helper()
	return allocator.New(s.node(label), name, allocator.Config[string]{})
}

// permit is an acquire on its way.
type permit = testkit.Call[*semaphore.Permit]

// acquire begins one, for an owner.
func (s *stage) acquire(n *node.Node, name string, capacity int, owner string) *permit {
	sem := semaphore.New(n, name, capacity, semaphore.Config{})
	ctx := berth.WithOwner(s.Within(patience), owner)
	return testkit.Begin(ctx, func(ctx context.Context) (*semaphore.Permit, error) { return sem.Acquire(ctx, nil) })
}

// queue begins one, and returns when so many wait.
func (s *stage) queue(n *node.Node, name string, capacity int, owner string, waiting int) *permit {
	s.Helper()
	call := s.acquire(n, name, capacity, owner)
	s.Await(owner+" stands in line", func() bool { return s.read.Look(keyspace.Sem, name).Waiting >= waiting })
	return call
}

// turns has a holder, and others that wait for it, in this order.
func (s *stage) turns(name string, owners ...string) (held *semaphore.Permit, waits []*permit) {
	s.Helper()
	held = s.acquire(s.node(owners[0]+"-label"), name, 1, owners[0]).Wait(s)
	for i, owner := range owners[1:] {
		waits = append(waits, s.queue(s.node(owner+"-label"), name, 1, owner, i+1))
	}
	return held, waits
}

// mounted is an empty page for the stage's console below a path.
func (s *stage) mounted(prefix string) *look {
	s.Helper()
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", http.StripPrefix(prefix, s.console.Config.Handler))
	served := httptest.NewServer(mux)
	s.Cleanup(served.Close)
	l := s.tab()
	l.base = served.URL + prefix + "/"
	return l
}
