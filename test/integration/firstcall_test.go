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
	"github.com/berth-go/berth/pkg/node"
)

// trips counts how often a client on one connection has waited for the server.
type trips struct {
	mu    sync.Mutex
	sent  []string // the begin of what each trip has sent
	asked bool     // an answer has not come yet
}

// only has a client have one connection, whose trips are counted.
func (n *trips) only(o *rueidis.ClientOption) {
	o.PipelineMultiplex = -1
	o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		conn, err := d.DialContext(ctx, "tcp", addr)
		return &counted{conn, n}, err
	}
}

// of returns what the trips of a call have sent, without those of the background.
func (n *trips) of(call func()) []string {
	n.mu.Lock()
	n.sent, n.asked = nil, false
	n.mu.Unlock()
	call()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sent
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
		c.trips.sent = append(c.trips.sent, string(p[:min(len(p), 60)]))
		c.trips.asked = true
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
			sent := n.of(func() { require.NoError(t, c.call(w, redis)) })
			require.LessOrEqual(t, len(sent), c.most, "%q", sent)
		})
	}
}
