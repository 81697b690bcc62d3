package integration

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// listener is a process that waits for a semaphore of one.
type listener struct {
	*node.Node
	told    chan observe.Event // what is said of the subscription
	granted chan *semaphore.Permit
	deaf    atomic.Int64 // how often it was
}

// listen has a new process wait for the semaphore.
func listen(t *testing.T, d *harness.Deployment, cfg node.Config) *listener {
	t.Helper()
	l := &listener{told: make(chan observe.Event, 1000)}
	cfg.Observer = observe.Func(func(e observe.Event) {
		switch e.Kind {
		case observe.Deaf:
			l.deaf.Add(1)
			l.told <- e
		case observe.Queued, observe.Subscribed:
			l.told <- e
		}
	})
	var err error
	l.Node, err = node.New(d.Client(t), cfg)
	require.NoError(t, err)
	l.queue(t)
	l.hears(t, observe.Subscribed)
	return l
}

// queue has it wait, and returns once it stands in line.
func (l *listener) queue(t *testing.T) {
	t.Helper()
	l.granted = make(chan *semaphore.Permit, 1)
	go func() {
		p, err := semaphore.New(l.Node, "gpu", 1, nil).Acquire(context.Background(), nil)
		if err != nil { // its test is over
			close(l.granted)
			return
		}
		l.granted <- p
	}()
	l.hears(t, observe.Queued)
}

// hears waits for an event.
func (l *listener) hears(t *testing.T, kind observe.Kind) {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case e := <-l.told:
			if e.Kind == kind {
				return
			}
		case <-limit:
			require.FailNow(t, "nothing was told", "%s", kind)
		}
	}
}

// listensAt is the server that has the subscription of a channel, nil for none.
func listensAt(t *testing.T, servers []*harness.Server, channel string) *harness.Server {
	t.Helper()
	for _, s := range servers {
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{s.Addr}, ForceSingleClient: true, DisableCache: true,
		})
		require.NoError(t, err)
		n, err := client.Do(t.Context(), client.B().Arbitrary("PUBSUB", "CHANNELS", channel).Build()).AsStrSlice()
		client.Close()
		require.NoError(t, err)
		if len(n) > 0 {
			return s
		}
	}
	return nil
}

// A node that was taken out of its Cluster runs on, keeps its subscriptions and is
// told of nothing. Whoever listens there finds that out by itself.
func TestAProcessThatListensAtARemovedNodeSubscribesElsewhere(t *testing.T) {
	t.Parallel()
	const lease = 9 * time.Second
	d := harness.Cluster(t)
	space, err := keyspace.New(harness.Namespace(t))
	require.NoError(t, err)
	cfg := node.Config{Namespace: space.Namespace(), Lease: lease}
	holder, err := node.New(d.Client(t), cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, holder.Close(context.Background())) }()
	gpu := semaphore.New(holder, "gpu", 1, nil)
	held, err := gpu.Acquire(t.Context(), nil)
	require.NoError(t, err)

	// Rueidis subscribes at any node. It is to be a replica, which has no slots.
	masters := d.Masters(t)
	var l *listener
	var at *harness.Server
	for range 50 {
		l = listen(t, d, cfg)
		at = listensAt(t, d.Servers(), space.Wake(l.ID()))
		require.NotNil(t, at)
		if !slices.Contains(masters, at) {
			break
		}
		require.NoError(t, l.Close(context.Background()))
	}
	require.False(t, slices.Contains(masters, at), "nobody has subscribed at a replica")
	defer func() { require.NoError(t, l.Close(context.Background())) }()

	d.Remove(t, at)
	turns := 0
	turn := func() {
		turns++
		require.NoError(t, held.Release(context.Background()))
		p := <-l.granted
		require.NotNil(t, p, "turn %d", turns)
		again := make(chan *semaphore.Permit, 1)
		go func() {
			p, err := gpu.Acquire(context.Background(), nil)
			if err != nil {
				close(again)
				return
			}
			again <- p
		}()
		require.NoError(t, p.Release(context.Background()))
		held = <-again
		require.NotNil(t, held)
		l.queue(t)
	}
	// A grant of which no message came raises a doubt. What a busy machine does not
	// publish in time settles none: then the next grant raises another.
	for l.deaf.Load() == 0 {
		require.Less(t, turns, 20, "nobody has found out that it is deaf")
		turn()
	}
	require.Eventually(t, func() bool {
		return listensAt(t, d.Servers(), space.Wake(l.ID())) != nil
	}, patience, 50*time.Millisecond, "at a node of the Cluster")
	turn()
	turn()
	require.NoError(t, held.Release(context.Background()))
	require.NotNil(t, <-l.granted)
	require.EqualValues(t, 1, l.deaf.Load(), "it hears")
}
