package harness

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// Proxied is a network in front of a server that fails on command. Its faults
// hold for connections that are open and for those that come, until Heal. Bytes
// come in order and whole: once some are lost, no more come in that direction, and
// Heal breaks the connection. What is lost is lost where it would be delivered, so that
// a fault that comes takes what is delayed along.
type Proxied struct {
	// Addr is host:port: the server, through the network.
	Addr string

	mu       sync.Mutex
	server   *Server           // guarded by mu
	listener net.Listener      // guarded by mu; nil while connections are refused
	over     bool              // guarded by mu: the test has ended
	open     map[*passage]bool // guarded by mu: the connections
	delay    [2]time.Duration  // guarded by mu, by direction
	drop     [2]bool           // guarded by mu, by direction
	changed  chan struct{}     // guarded by mu; closed when a fault is laid or lifted
	tasks    sync.WaitGroup    // what accepts and carries
}

// The two ways through a connection.
const (
	requests = iota
	replies
)

// Proxy puts a network in front of s; it ends with the test.
func Proxy(t testing.TB, s *Server) *Proxied {
	t.Helper()
	p := &Proxied{server: s, open: map[*passage]bool{}, changed: make(chan struct{})}
	var err error
	for range 5 { // another process may take the port first
		if p.Addr, err = freeAddr(); err != nil {
			break
		}
		if err = p.listen(); err == nil {
			t.Cleanup(func() {
				p.change(func() { p.over = true })
				p.Cut()
				p.tasks.Wait()
			})
			return p
		}
	}
	t.Fatalf("a proxy in front of the Redis at %s: %v", s.Addr, err)
	return nil
}

// URL is the proxy's address as redis://host:port, for programs that are started
// by a test. Anything else that the server's URL says (user, password, database)
// is kept.
func (p *Proxied) URL() string {
	s := p.behind()
	return strings.Replace(s.url, s.Addr, p.Addr, 1)
}

// Client returns a client of the server through the proxy, closed when the test
// ends. Each edit may change the options first.
func (p *Proxied) Client(t testing.TB, edits ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	through := func(o *rueidis.ClientOption) { o.InitAddress = []string{p.Addr} }
	return p.behind().Client(t, append([]func(*rueidis.ClientOption){through}, edits...)...)
}

// behind is the server to which connections are led.
func (p *Proxied) behind() *Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server
}

// AddLatency delays each reply by d. A further call replaces the delay.
func (p *Proxied) AddLatency(d time.Duration) {
	p.change(func() { p.delay[replies] = d })
}

// AddRequestLatency delays each request by d. A further call replaces the delay.
func (p *Proxied) AddRequestLatency(d time.Duration) {
	p.change(func() { p.delay[requests] = d })
}

// DropReplies lets requests through and loses every reply and push; connections
// stay open until one side closes them.
func (p *Proxied) DropReplies() {
	p.change(func() { p.drop[replies] = true })
}

// BlackHole loses everything in both directions; connections stay open until one side
// closes them, and new ones are accepted.
func (p *Proxied) BlackHole() {
	p.change(func() { p.drop = [2]bool{true, true} })
}

// Forget loses everything of the connections that are open, for good, while new
// ones work: what a router does that forgot them. It returns how many they are.
func (p *Proxied) Forget() int {
	n := 0
	p.change(func() {
		n = len(p.open)
		for k := range p.open {
			k.lost = [2]bool{true, true}
		}
	})
	return n
}

// Reset breaks every connection that is open, and goes on accepting: one that comes in
// that moment may stay.
func (p *Proxied) Reset() {
	p.change(p.breakAll)
}

// Cut breaks every open connection, and refuses new ones until Heal.
func (p *Proxied) Cut() {
	p.change(func() {
		if p.listener != nil {
			// Not while a process is started: it would listen on until it executes.
			syscall.ForkLock.RLock()
			_ = p.listener.Close()
			syscall.ForkLock.RUnlock()
			p.listener = nil
		}
		p.breakAll()
	})
}

// Heal lifts all faults. Connections that lost data are broken by it: what was
// lost cannot come any more.
func (p *Proxied) Heal(t testing.TB) {
	t.Helper()
	p.change(func() {
		p.delay, p.drop = [2]time.Duration{}, [2]bool{}
		for k := range p.open {
			if k.lost[requests] || k.lost[replies] {
				p.end(k)
			}
		}
	})
	p.comeBack(t)
}

// Lead breaks every open connection, and leads those that come to another server, as
// when that one has taken over. It lifts all faults.
func (p *Proxied) Lead(t testing.TB, s *Server) {
	t.Helper()
	p.change(func() {
		p.delay, p.drop = [2]time.Duration{}, [2]bool{}
		p.breakAll()
		p.server = s
	})
	p.comeBack(t)
}

// LeadNew leads the connections that come to another server; those that are open stay
// with theirs. So does the address of a managed service whose master changes.
func (p *Proxied) LeadNew(s *Server) {
	p.change(func() { p.server = s })
}

// change lays or lifts faults. It returns when all open connections have them: what is
// not delivered by then, or on its way into the socket, meets what the change left.
func (p *Proxied) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	close(p.changed)
	p.changed = make(chan struct{})
}

// breakAll ends the open connections; p.mu is held.
func (p *Proxied) breakAll() {
	for k := range p.open {
		p.end(k)
	}
}

// end closes both sides of a connection; p.mu is held.
func (p *Proxied) end(k *passage) {
	delete(p.open, k)
	_ = k.client.Close()
	if k.server != nil {
		_ = k.server.Close()
	}
}

// comeBack listens again, unless the proxy does. It tries more than once: another test
// that looks for a free port has each for a moment.
func (p *Proxied) comeBack(t testing.TB) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(startLimit); time.Now().Before(deadline); <-time.After(time.Millisecond) {
		if err = p.listen(); err == nil {
			return
		}
	}
	t.Fatalf("the proxy at %s does not come back: %v", p.Addr, err)
}

// listen accepts connections, unless the proxy does.
func (p *Proxied) listen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil || p.over {
		return nil
	}
	l, err := net.Listen("tcp", p.Addr)
	if err != nil {
		return err
	}
	p.listener = l
	p.tasks.Go(func() { p.accept(l) })
	return nil
}

// accept leads what comes to the server.
func (p *Proxied) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many files are open, for example
			<-time.After(10 * time.Millisecond)
			continue
		}
		p.tasks.Go(func() { p.connect(l, &passage{client: client}) })
	}
}

// connect makes the server's side of a connection, unless it is broken meanwhile.
func (p *Proxied) connect(l net.Listener, k *passage) {
	p.mu.Lock()
	to, cut := p.server, p.listener != l
	p.open[k] = true
	if cut {
		p.end(k)
	}
	p.mu.Unlock()
	if cut {
		return
	}
	server, err := net.DialTimeout("tcp", to.Addr, dialLimit)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.end(k)
	case !p.open[k]:
		_ = server.Close()
	default:
		k.server = server
		p.carry(k, server, k.client, requests)
		p.carry(k, k.client, server, replies)
	}
}

// passage is one connection through the network.
type passage struct {
	client, server net.Conn // server is nil, and guarded by Proxied.mu, until there is one
	lost           [2]bool  // guarded by Proxied.mu, by direction: bytes are lost, so no more come
}

// piece is what came from one side at a time.
type piece struct {
	text []byte
	came time.Time
}

// maxPieces are read before the first of them is delivered; then the sender waits.
const maxPieces = 1024

// carry takes one direction of a connection from one side to the other. When the one
// side has closed it, and what came before is delivered, the connection ends. When the
// other side takes no more, what it said itself is delivered first.
func (p *Proxied) carry(k *passage, to, from net.Conn, way int) {
	pieces := make(chan piece, maxPieces)
	p.tasks.Go(func() {
		defer close(pieces)
		text := make([]byte, 16<<10)
		for {
			n, err := from.Read(text)
			if err != nil {
				return
			}
			pieces <- piece{bytes.Clone(text[:n]), time.Now()}
		}
	})
	p.tasks.Go(func() {
		defer p.change(func() { p.end(k) })
		for next := range pieces {
			if !p.arrives(k, next, way) {
				continue
			}
			if _, err := to.Write(next.text); err != nil {
				_ = to.Close()
			}
		}
	})
}

// arrives waits until a piece is due, and reports false for one that is lost.
func (p *Proxied) arrives(k *passage, next piece, way int) bool {
	for {
		p.mu.Lock()
		k.lost[way] = k.lost[way] || p.drop[way]
		lost, wait, open := k.lost[way], time.Until(next.came.Add(p.delay[way])), p.open[k]
		changed := p.changed
		p.mu.Unlock()
		if lost || !open {
			return false
		}
		if wait <= 0 {
			return true
		}
		select {
		case <-time.After(wait):
		case <-changed:
		}
	}
}
