package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"hash/maphash"
	"html/template"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/origin"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
)

// defaultMaxStreams is how many pages are live at once unless Config says otherwise.
const defaultMaxStreams = 100

// Config is what a Console works with. Redis is required.
type Config struct {
	// Redis is the client that reads and acts. It stays the caller's.
	Redis rueidis.Client
	// Namespace is the first part of every key. Default "berth".
	Namespace string
	// CallTimeout bounds one attempt of a call. Default 3 s.
	CallTimeout time.Duration
	// AllowActions lets those act to whom Access says so. Default: it is read-only.
	AllowActions bool
	// Access says who asks, and what they may do. It must be safe for concurrent use. A live page is asked for again
	// every 15 minutes. Default: whoever reaches the handler may look and, if AllowActions is set, act.
	Access func(*http.Request) Access
	// Hosts are the names, without a port, by which a browser may ask for it: "localhost", "ops.example.org". They keep off
	// a site whose name was made to lead here: to a browser its scripts are those of this page. IP addresses are always
	// known; "*" is any name. Default: "localhost" without Access, any name with it. An Access that goes by anything but
	// what this page's own name was given, as by the address or by a header that a script may set, needs Hosts.
	Hosts []string
	// MaxStreams is how many pages are live at once; a quarter of them, at least 1, for one Access.User or, where Access
	// names none, for one remote address. Default 100.
	MaxStreams int
	// Logger and Observer get the events of actions, one of kind observe.Acted for each, and those of its calls; and
	// observe.Panicked, should a reading do that.
	Logger   *slog.Logger
	Observer observe.Observer
}

// Access is who asks, and what they may do.
type Access struct {
	// User is who asks, "" for nobody that is known. It stands in the event of an action.
	User string
	// Look says that they may see the pages, Act that they may act, too, if Config.AllowActions is set.
	Look, Act bool
}

// Console is the page, an http.Handler to mount under any prefix with http.StripPrefix. It is safe for concurrent use.
type Console struct {
	cfg   Config
	space string // the namespace
	// observer gets the events that are not the actor's.
	observer observe.Observer
	watch    *watch.Watcher
	boards   *boards
	actor    *act.Actor
	deeds    *deeds
	health   *health
	forms    *forms
	pages    *template.Template
	mux      *http.ServeMux
	secret   [32]byte

	ctx     context.Context // ends with Close
	end     context.CancelFunc
	mu      sync.Mutex
	streams int            // guarded by mu
	shares  map[string]int // likewise, of each who looks; guarded by mu
	running sync.WaitGroup // what Close waits for; it grows only under mu, and not after the end of ctx
}

// New returns a Console. It does no I/O and starts nothing before somebody looks. Close it. Its errors are
// *berth.ConfigError.
func New(cfg Config) (*Console, error) {
	read, err := inspect.New(cfg.Redis, inspect.Config{Namespace: cfg.Namespace, CallTimeout: cfg.CallTimeout})
	if err != nil {
		return nil, err
	}
	switch {
	case cfg.MaxStreams < 0:
		return nil, berth.Invalid("MaxStreams", "%d is negative", cfg.MaxStreams)
	case cfg.MaxStreams == 0:
		cfg.MaxStreams = defaultMaxStreams
	}
	switch {
	case len(cfg.Hosts) == 0 && cfg.Access == nil:
		cfg.Hosts = origin.Local()
	case len(cfg.Hosts) == 0:
		cfg.Hosts = []string{origin.Any}
	}
	c := &Console{
		cfg: cfg, space: cmp.Or(cfg.Namespace, keyspace.DefaultNamespace), observer: observe.Multi(cfg.Observer, observe.Slog(cfg.Logger)),
		deeds: newDeeds(), health: &health{redis: cfg.Redis}, forms: &forms{posts: map[int]*post{}}, pages: parsed(), shares: map[string]int{},
	}
	c.watch = watch.New(read, c.tell)
	c.boards = &boards{console: c, seed: maphash.MakeSeed(), open: map[string]*board{}}
	c.actor = act.New(cfg.Redis, node.Config{
		Namespace: cfg.Namespace, CallTimeout: cfg.CallTimeout, Logger: cfg.Logger, Observer: cfg.Observer,
	})
	c.ctx, c.end = context.WithCancel(context.Background())
	_, _ = rand.Read(c.secret[:]) // it never fails
	c.mux = c.routes()
	return c, nil
}

// tell sends an event.
func (c *Console) tell(e observe.Event) {
	e.Namespace = c.space
	c.observer.Observe(e)
}

// enter counts something for whose end Close waits: its caller ends it by c.running.Done. It is refused once Close was
// called.
func (c *Console) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return errClosed
	}
	c.running.Add(1)
	return nil
}

// Close ends the live pages, all reading, and the waiting for drains, which stay in force. It waits for that, and for the
// actions under way, until ctx ends. What is asked for afterwards is refused.
func (c *Console) Close(ctx context.Context) error {
	c.mu.Lock() // nothing begins behind it
	c.end()
	c.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.running.Wait()
		c.watch.Close()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
