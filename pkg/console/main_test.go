package console_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/console"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// world is a server in virtual time, and processes on it.
type world struct{ *testkit.World }

func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	testkit.In(t, "gpu", "berth:sem:{gpu}:state", "berth:sem:{gpu}:line", func(t *testing.T, base *testkit.World) {
		test(&world{base})
	})
}

// process is one with a node, whose label is its name.
type process struct {
	*testkit.Process
	*node.Node
	w     *world
	locks *qlock.Locks
}

func (w *world) process(label string) *process {
	w.T.Helper()
	p := w.Process()
	n := testkit.Must(node.New(p.Redis, node.Config{Label: label, Lease: testkit.Lease, Observer: p.Observer(nil)})).In(w.T)
	p.Closes(n.Close)
	return &process{p, n, w, qlock.New(n, qlock.Config{Lease: testkit.Lease})}
}

// of is a context with an owner, "" for none.
func of(owner string) context.Context { return berth.WithOwner(ctx, owner) }

// permit takes a permit of a semaphore at once.
func (p *process) permit(owner, name string, capacity int) *semaphore.Permit {
	p.w.T.Helper()
	return testkit.Must(semaphore.New(p.Node, name, capacity, semaphore.Config{}).Acquire(of(owner), nil)).In(p.w.T)
}

// awaitPermit stands in line for one.
func (p *process) awaitPermit(owner, name string, capacity int) *testkit.Wait[*semaphore.Permit] {
	p.w.T.Helper()
	s := semaphore.New(p.Node, name, capacity, semaphore.Config{})
	return testkit.Queue(of(owner), p.w.World, func(ctx context.Context) (*semaphore.Permit, error) { return s.Acquire(ctx, nil) })
}

// site is a console that is served in virtual time.
type site struct {
	w      *world
	pipes  *pipes
	page   *console.Console
	client *http.Client
	base   string // with the prefix, without a slash at its end
}

// serve serves a console below a prefix, "" for the root, until the test ends.
func (w *world) serve(prefix string, cfg console.Config) *site {
	w.T.Helper()
	if cfg.Redis == nil {
		cfg.Redis = w.Redis
	}
	if cfg.Hosts == nil {
		cfg.Hosts = []string{"console.test", "example.com"} // the second is that of httptest
	}
	page := testkit.Must(console.New(cfg)).In(w.T)
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", http.StripPrefix(prefix, page))
	pipes := &pipes{dialed: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: mux}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(pipes) // until it is closed
	}()
	transport := &http.Transport{DialContext: pipes.dial}
	w.T.Cleanup(func() {
		require.NoError(w.T, page.Close(ctx))
		transport.CloseIdleConnections()
		require.NoError(w.T, server.Close())
		<-served
		synctest.Wait()
	})
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &site{w, pipes, page, client, "http://console.test" + prefix}
}

// onSite runs a test beside a console that is as by default.
func onSite(t *testing.T, test func(w *world, s *site)) {
	t.Helper()
	inWorld(t, func(w *world) { test(w, w.serve("", console.Config{})) })
}

// pipes is a listener without a network: time stays virtual.
type pipes struct {
	dialed chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialed:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.dialed <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// answer is what was answered to a request.
type answer struct {
	code int
	head http.Header
	body string
}

func (s *site) do(r *http.Request) answer {
	s.w.T.Helper()
	resp := testkit.Must(s.client.Do(r)).In(s.w.T)
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.w.T, errors.Join(err, resp.Body.Close()))
	return answer{resp.StatusCode, resp.Header, string(body)}
}

// get asks for a page; what are changes of the request.
func (s *site) get(address string, what ...func(*http.Request)) answer {
	s.w.T.Helper()
	r := testkit.Must(http.NewRequest(http.MethodGet, s.base+"/"+strings.TrimPrefix(address, "./"), nil)).In(s.w.T)
	for _, change := range what {
		change(r)
	}
	return s.do(r)
}

// page asks for a page that is there.
func (s *site) see(address string) string {
	s.w.T.Helper()
	a := s.get(address)
	require.Equal(s.w.T, http.StatusOK, a.code, a.body)
	return a.body
}

// stream is a page that is live.
type stream struct {
	s     *site
	code  int
	close func()
	ended chan struct{}

	mu      sync.Mutex
	regions map[string]string // guarded by mu
	news    map[string]int    // how often each came; guarded by mu
	beats   int               // guarded by mu
	cycles  int               // of the last beat; guarded by mu
	err     string            // of the last beat; guarded by mu
}

// open opens the stream of a page.
func (s *site) open(query string) *stream {
	s.w.T.Helper()
	ctx, cancel := context.WithCancel(ctx)
	r := testkit.Must(http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/events?"+query, nil)).In(s.w.T)
	resp := testkit.Must(s.client.Do(r)).In(s.w.T)
	l := &stream{s: s, code: resp.StatusCode, ended: make(chan struct{}), regions: map[string]string{}, news: map[string]int{}}
	l.close = func() { cancel(); <-l.ended }
	go func() {
		defer close(l.ended)
		l.read(resp.Body)
		_ = resp.Body.Close()
	}()
	s.w.T.Cleanup(l.close)
	return l
}

func (l *stream) read(body io.Reader) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<24)
	for kind := ""; lines.Scan(); {
		if of, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kind = of
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			l.take(kind, data)
		}
	}
}

func (l *stream) take(kind, data string) {
	var e struct {
		Name, HTML, Error string
		Cycles            int
	}
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		e.Error = err.Error()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch kind {
	case "region":
		l.regions[e.Name] = e.HTML
		l.news[e.Name]++
	case "beat":
		l.beats++
		l.cycles = e.Cycles
		l.err = cmp.Or(e.Error, "-")
	}
}

// region is a region as it came last, and how often it came.
func (l *stream) region(name string) (html string, times int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.regions[name], l.news[name]
}

// known is how many cycles the tab was told of last.
func (l *stream) known() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cycles
}
