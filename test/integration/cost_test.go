package integration

import (
	"context"
	"crypto/tls"
	"net"
	"regexp"
	"sync"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// busy runs so many scripts at once that all connections of the node are opened. What only reads
// goes over the first one.
func (w *world) busy(ops *node.Operator) {
	w.Helper()
	for range 5 {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if _, err := ops.Sweep(w.Within(patience), keyspace.Sem, "gpu"); err != nil {
					w.Errorf("sweep: %v", err)
				}
			})
		}
		all.Wait()
	}
}

// However many wait, one connection more at the most brings their wake-ups. Of RESP 2 pkg/semaphore has it.
func TestWaitersOpenAtMostOneConnection(t *testing.T) {
	w := private(t)
	n := w.node(node.Config{})
	s := w.sem(n, "gpu", 1)
	w.busy(n.Operator())
	before := w.number("clients", "connected_clients")
	p := w.take(s, nil)
	var waits []*taking
	for range 50 {
		waits = append(waits, w.begin(s, nil))
	}
	w.Await("all wait", func() bool { return w.waiting("gpu") == len(waits) })
	w.subscribed(n)
	require.LessOrEqual(t, w.number("clients", "connected_clients")-before, 1)
	w.release(p)
	drain(w, waits)
}

// trips counts how often a client on one connection has waited for the server.
type trips struct {
	mu    sync.Mutex
	sent  []string // guarded by mu: the begin of what each trip has sent
	asked bool     // guarded by mu: an answer has not come yet
}

// only has a client have one connection, whose trips are counted.
func (n *trips) only(o *rueidis.ClientOption) {
	o.PipelineMultiplex = -1
	o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		conn, err := d.DialContext(ctx, "tcp", addr)
		return &counted{conn, n}, err
	}
}

// all returns what each trip has sent, without those of the background, and begins anew.
func (n *trips) all() (sent []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	sent, n.sent, n.asked = n.sent, nil, false
	return sent
}

// aside is what the background sends: scripts for heartbeats, and what rueidis asks a connection that is idle.
var aside = regexp.MustCompile(`^\*\d+\r\n\$\d+\r\n(SCRIPT|SUBSCRIBE|PING)\r\n`)

// begun is what begins with a command. A script may take two writes, and an answer to the background may come in between.
var begun = regexp.MustCompile(`^\*\d+\r\n\$\d+\r\n`)

// counted is a connection.
type counted struct {
	net.Conn
	trips *trips
}

func (c *counted) Write(p []byte) (int, error) {
	c.trips.mu.Lock()
	if !c.trips.asked && begun.Match(p) && !aside.Match(p) {
		c.trips.sent, c.trips.asked = append(c.trips.sent, string(p[:min(len(p), 60)])), true
	}
	c.trips.mu.Unlock()
	return c.Conn.Write(p)
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.trips.mu.Lock()
	c.trips.asked = false
	c.trips.mu.Unlock()
	return n, err
}

// One reads the notice: a grant beside that could be one in a pause.
func TestTheFirstCallOfANodeTakesThreeTripsAtTheMost(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		most int
		call func(w *world, redis rueidis.Client) error
	}{
		"a lock": {2, func(w *world, redis rueidis.Client) error {
			_, err := w.lockerOn(redis, node.Config{}).TryLock(ctx, "door", nil)
			return err
		}},
		"a semaphore of 10": {2, func(w *world, redis rueidis.Client) error {
			_, err := w.sem(w.nodeOn(redis, node.Config{}), "gpu", 10).TryAcquire(ctx, nil)
			return err
		}},
		"a semaphore of 1 that is in fat form": {3, func(w *world, redis rueidis.Client) error {
			other := w.sem(w.node(node.Config{}), "gpu", 1)
			w.take(other, nil)
			_, err := w.sem(w.nodeOn(redis, node.Config{}), "gpu", 1).TryAcquire(ctx, nil)
			require.ErrorIs(w, err, berth.ErrBusy)
			return nil
		}},
		"a pool": {2, func(w *world, redis rueidis.Client) error {
			w.add(w.pool(node.Config{}), "a")
			_, err := w.proxies(w.nodeOn(redis, node.Config{}), poolConfig{}).TryAllocate(ctx, nil)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := private(t)
			n := &trips{}
			redis := w.server.Client(t, n.only)
			n.all() // of the connecting
			require.NoError(t, c.call(w, redis))
			sent := n.all()
			require.LessOrEqual(t, len(sent), c.most, "%q", sent)
		})
	}
}
