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

// Config configures a Console. Redis is required.
type Config struct {
	// Redis is the client for readings and actions. The caller closes it.
	Redis rueidis.Client
	// Namespace is the first part of every key. Default "berth".
	Namespace string
	// CallTimeout limits one attempt of a call. Default 3 s.
	CallTimeout time.Duration
	// AllowActions lets users act whom Access allows to act. Default false: the page is read-only.
	AllowActions bool
	// Access returns the user of a request and the user's rights. Access must be safe for concurrent use. For a live
	// page Access is called again every 15 minutes. Default: everybody who reaches the handler may look and, if
	// AllowActions is set, act.
	Access func(*http.Request) Access
	// Hosts are the names, without a port, by which a browser may address the page: "localhost", "ops.example.org". Hosts
	// keep out a foreign site whose name leads here, since a browser takes its scripts for those of this page. IP addresses
	// are always allowed; "*" allows any name. Default: "localhost" without Access, any name with Access. Set Hosts if
	// Access decides by anything that does not belong to the page's own name, such as the remote address or a header that a
	// script can set.
	Hosts []string
	// MaxStreams is how many pages may be live at once. One Access.User or, without a User, one remote address may have
	// a quarter of them, at least 1. Default 100.
	MaxStreams int
	// Logger and Observer get an event of kind observe.Acted for each action, the events of the action's calls, and
	// observe.Panicked if a reading panics.
	Logger   *slog.Logger
	Observer observe.Observer
}

// Access is the user of a request and the user's rights.
type Access struct {
	// User is the name of the user, "" if unknown. The event of an action has the User.
	User string
	// Look allows the user to see the pages. Act also allows the user to act, if Config.AllowActions is
	// set.
	Look, Act bool
}

// Console is the web page, an http.Handler to mount under any prefix with http.StripPrefix. A Console is safe for
// concurrent use.
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

// New returns a Console, which the caller must close. New does no I/O, and the Console starts no work
// before the first request. The errors of New are *berth.ConfigError.
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

// enter counts work that Close waits for; its caller ends the work by c.running.Done. enter refuses once Close was
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

// Close ends the live pages and all readings, and stops waiting for drains, which stay in force. Close waits for this,
// and for the actions under way, until ctx ends. Later requests are refused.
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
