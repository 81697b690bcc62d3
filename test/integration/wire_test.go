package integration

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// wire is a network whose open connections can go dead without anybody being
// told, while new ones work: what a router that forgot them does.
type wire struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	links map[*link]bool // guarded by mu: those that are open
	over  bool           // guarded by mu
	tasks sync.WaitGroup
}

// link is one connection through the wire.
type link struct {
	client, server net.Conn
	dead           atomic.Bool
}

// wire puts such a network in front of the bed's server; it ends with the test.
func (b *bed) wire() *wire {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	w := &wire{listener: l, target: b.server.Addr, links: map[*link]bool{}}
	w.tasks.Go(w.accept)
	b.Cleanup(w.close)
	return w
}

// through makes a client use the wire, and notice a dead connection within two
// seconds.
func (w *wire) through(o *rueidis.ClientOption) {
	o.InitAddress = []string{w.listener.Addr().String()}
	o.Dialer.KeepAlive = keepAlive
	o.ConnWriteTimeout = 4 * keepAlive
}

func (w *wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		k := &link{client: client, server: server}
		w.mu.Lock()
		if w.over {
			k.close()
		}
		w.links[k] = true
		w.tasks.Go(func() { k.carry(server, client) })
		w.tasks.Go(func() {
			k.carry(client, server)
			w.mu.Lock()
			delete(w.links, k)
			w.mu.Unlock()
		})
		w.mu.Unlock()
	}
}

// carry copies one direction, into the void once the link is dead.
func (k *link) carry(to, from net.Conn) {
	defer k.close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if k.dead.Load() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (k *link) close() {
	_ = k.client.Close()
	_ = k.server.Close()
}

// die makes all open connections dead, and returns how many those are.
func (w *wire) die() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range w.links {
		k.dead.Store(true)
	}
	return len(w.links)
}

func (w *wire) close() {
	_ = w.listener.Close()
	w.mu.Lock()
	w.over = true
	for k := range w.links {
		k.close()
	}
	w.mu.Unlock()
	w.tasks.Wait()
}
