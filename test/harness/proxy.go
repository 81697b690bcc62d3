package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/redis/rueidis"
	"github.com/rs/zerolog"
)

// Proxied is a network in front of a server that fails on command. Its faults
// hold for connections that are open and for those that come, until Heal.
type Proxied struct {
	// Addr is host:port: the server, through the network.
	Addr string

	server *Server

	mu     sync.Mutex       // held while a fault is laid or lifted
	proxy  *toxiproxy.Proxy // guarded by mu
	faults map[string]bool  // guarded by mu; the toxics in place
}

// The toxics that are used, by the names that toxiproxy gives them: kind and
// direction.
const (
	lateReplies  = "latency_downstream"
	lateRequests = "latency_upstream"
	noReplies    = "timeout_downstream"
	noRequests   = "timeout_upstream"
)

// Proxy puts a network in front of s; it ends with the test.
func Proxy(t testing.TB, s *Server) *Proxied {
	t.Helper()
	var err error
	for range 5 { // another process may take the port first
		p := &Proxied{server: s, faults: map[string]bool{}}
		if p.Addr, err = freeAddr(); err != nil {
			break
		}
		p.proxy = p.fresh()
		if err = p.proxy.Start(); err == nil {
			t.Cleanup(func() { p.Cut(t) })
			return p
		}
	}
	t.Fatalf("a proxy in front of the Redis at %s: %v", s.Addr, err)
	return nil
}

// fresh returns a proxy without faults on the address of p.
func (p *Proxied) fresh() *toxiproxy.Proxy {
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	return toxiproxy.NewProxy(api, "redis", p.Addr, p.server.Addr)
}

// URL is the proxy's address as redis://host:port, for programs that are started
// by a test. Anything else that the server's URL says (user, password, database)
// is kept.
func (p *Proxied) URL() string {
	return strings.Replace(p.server.url, p.server.Addr, p.Addr, 1)
}

// Client returns a client of the server through the proxy, closed when the test
// ends. Each edit may change the options first.
func (p *Proxied) Client(t testing.TB, edits ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	through := func(o *rueidis.ClientOption) { o.InitAddress = []string{p.Addr} }
	return p.server.Client(t, append([]func(*rueidis.ClientOption){through}, edits...)...)
}

// AddLatency delays each reply by d, in whole milliseconds. A further call
// replaces the delay.
func (p *Proxied) AddLatency(t testing.TB, d time.Duration) {
	t.Helper()
	p.lay(t, lateReplies, map[string]any{"latency": d.Milliseconds()})
}

// AddRequestLatency delays each request by d, in whole milliseconds. A further
// call replaces the delay.
func (p *Proxied) AddRequestLatency(t testing.TB, d time.Duration) {
	t.Helper()
	p.lay(t, lateRequests, map[string]any{"latency": d.Milliseconds()})
}

// DropReplies lets requests through and loses every reply and push; connections
// stay open.
func (p *Proxied) DropReplies(t testing.TB) {
	t.Helper()
	p.lay(t, noReplies, map[string]any{"timeout": 0})
}

// BlackHole loses everything in both directions; connections stay open, and new
// ones are accepted.
func (p *Proxied) BlackHole(t testing.TB) {
	t.Helper()
	p.lay(t, noRequests, map[string]any{"timeout": 0})
	p.lay(t, noReplies, map[string]any{"timeout": 0})
}

// Reset breaks every open connection, and accepts new ones at once.
func (p *Proxied) Reset(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proxy.Stop()
	p.start(t)
}

// Cut breaks every open connection, and refuses new ones until Heal.
func (p *Proxied) Cut(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proxy.Stop()
}

// Heal lifts all faults. Connections that lost data are broken by it: what was
// lost cannot come any more.
func (p *Proxied) Heal(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.faults[noReplies] || p.faults[noRequests] {
		// A toxic that is taken off a link with data on its way blocks the
		// link's goroutines for good; on a proxy that has ended it just ends.
		p.proxy.Stop()
		p.proxy = p.fresh()
	} else {
		p.proxy.Toxics.ResetToxics(context.Background())
	}
	clear(p.faults)
	p.start(t)
}

// Lead breaks every open connection, and leads those that come to another server, as
// when that one has taken over. It lifts all faults.
func (p *Proxied) Lead(t testing.TB, s *Server) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proxy.Stop()
	p.server = s
	p.proxy = p.fresh()
	clear(p.faults)
	p.start(t)
}

// start listens again, unless the proxy does. It tries more than once: a process
// that another test starts holds a copy of the old listener until it executes.
func (p *Proxied) start(t testing.TB) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(startLimit); time.Now().Before(deadline); <-time.After(time.Millisecond) {
		err = p.proxy.Start()
		if err == nil || errors.Is(err, toxiproxy.ErrProxyAlreadyStarted) {
			return
		}
	}
	t.Fatalf("the proxy at %s does not come back: %v", p.Addr, err)
}

// lay adds a toxic, in the place of the one of that name. It returns when all
// open connections have it.
func (p *Proxied) lay(t testing.TB, name string, attributes map[string]any) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.replace(name, attributes); err != nil {
		t.Fatalf("the proxy at %s, %s: %v", p.Addr, name, err)
	}
	p.faults[name] = true
}

// replace removes and adds, because toxiproxy changes the settings of a toxic
// while its goroutines read them.
func (p *Proxied) replace(name string, attributes map[string]any) error {
	if p.faults[name] {
		if err := p.proxy.Toxics.RemoveToxic(context.Background(), name); err != nil {
			return err
		}
	}
	kind, stream, _ := strings.Cut(name, "_")
	text, err := json.Marshal(map[string]any{
		"name": name, "type": kind, "stream": stream, "toxicity": 1, "attributes": attributes,
	})
	if err != nil {
		return err
	}
	_, err = p.proxy.Toxics.AddToxicJson(bytes.NewReader(text))
	return err
}
