package integration

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// An acquire that the network delivers only after its caller has left, and after
// the cancel, must take nothing.
func TestALateAcquireMeetsATombstone(t *testing.T) {
	t.Parallel()
	for script, capacity := range map[string]int{"semaphore_acquire": 2, "thin_acquire": 1} {
		t.Run(script, func(t *testing.T) {
			w := shared(t)
			m := w.meddler()
			s := w.sem(w.nodeOn(m, node.Config{Lease: time.Minute, CallTimeout: time.Second}), "gpu", capacity)
			m.always(script, deferred) // also the attempts that follow, where the cancel takes its time
			ctx, cancel := context.WithCancel(t.Context())
			q := w.beginWith(ctx, s, nil)
			w.Await("the acquire is on its way", func() bool { return m.meddled(script) > 0 })
			cancel()
			w.Signalled("the caller to be let go", q.Done)
			require.ErrorIs(t, q.Err, context.Canceled)
			w.Await("the cancel has run", func() bool { return len(w.look("gpu").stones) == 1 })
			m.deliver()
			v := w.whole("gpu")
			require.Empty(t, v.holds)
			require.Empty(t, v.alive)
			require.Len(t, v.stones, 1)
		})
	}
}

// An attempt that was answered only on the server, the next one, and a third that
// arrives after the release: one hold, once.
func TestAttemptsThatRunTwiceHoldOnce(t *testing.T) {
	w := shared(t)
	m := w.meddler()
	s := w.sem(w.nodeOn(m, node.Config{Lease: time.Minute, CallTimeout: time.Second}), "gpu", 2)
	m.next("semaphore_acquire", unheard, deferred)
	p := w.take(s, nil)
	require.Equal(t, 2, m.meddled("semaphore_acquire"))
	v := w.whole("gpu")
	require.Len(t, v.holds, 1)
	require.EqualValues(t, 1, v.state["used"])
	require.Equal(t, v.records[p.ID()].Fence, p.Fence())
	require.NoError(t, p.Release(w.Within(patience)))
	m.deliver()
	v = w.whole("gpu")
	require.Empty(t, v.holds, "the late attempt holds what was released")
	require.Empty(t, v.alive)
}

// A release whose answer was lost has released. Whoever calls it again, because
// it returned an error, is told so.
func TestAReleaseThatWasNotAnsweredCanBeRepeated(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, script string
		capacity     int
		fate         fate
	}{
		{"it had run", "semaphore_release", 2, unheard},
		{"it had not run", "semaphore_release", 2, deferred},
		{"of a thin name, it had run", "thin_release", 1, unheard},
		{"of a thin name, it had not run", "thin_release", 1, deferred},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := shared(t)
			m := w.meddler()
			cfg := node.Config{Lease: time.Minute, CallTimeout: safe / 2} // of two attempts one is answered, whatever the machine does
			cfg.Retry.Attempts = 2
			s := w.sem(w.nodeOn(m, cfg), "gpu", test.capacity)
			p := w.take(s, nil)
			m.next(test.script, test.fate, test.fate)
			require.Error(t, p.Release(w.Within(patience)))
			require.Error(t, p.Err(), "what was to be released is still believed in")
			require.NoError(t, p.Release(w.Within(patience)))
			require.NoError(t, p.Release(w.Within(patience)))
			m.deliver()
			w.tombstones("gpu") // of the permit, if its acquire was slow too
		})
	}
}

// A restore that the network delivers only after its claim was cancelled must not
// bring the claim back.
func TestALateRestoreBringsNothingBack(t *testing.T) {
	w := shared(t)
	m := w.meddler()
	holder := w.sem(w.node(node.Config{Lease: time.Minute}), "gpu", 1)
	s := w.sem(w.nodeOn(m, node.Config{Lease: safe}), "gpu", 1)
	w.take(holder, nil)
	ctx, cancel := context.WithCancel(t.Context())
	q := w.beginWith(ctx, s, nil)
	w.Await("it waits", func() bool { return w.look("gpu").waiting() == 1 })
	m.next("semaphore_restore", deferred)
	w.forget("gpu")
	w.Await("the restore is on its way", func() bool { return m.meddled("semaphore_restore") == 1 })
	cancel()
	w.Signalled("the caller to be let go", q.Done)
	w.Await("the cancel has run", func() bool { return m.sent("semaphore_release") == 1 })
	m.deliver()
	v := w.whole("gpu")
	require.Empty(t, v.alive, "a ghost waits")
	require.Empty(t, v.holds, "a ghost holds")
}

// forget does to a name what FLUSHALL does to a server.
func (w *world) forget(name string) {
	w.Helper()
	w.do("DEL", w.stateKey(name), w.lineKey(name))
}

// A hand-off may come while the reply of an acquire is lost, and be over before
// the acquire is repeated. Its push is not about the place that the repetition
// gets.
func TestAPushForAnEarlierAttemptIsNotBelieved(t *testing.T) {
	w := shared(t)
	const lease = safe
	m := w.meddler()
	first := w.sem(w.node(node.Config{Lease: lease}), "gpu", 1)
	third := w.sem(w.node(node.Config{Lease: lease}), "gpu", 1)
	client := w.nodeOn(m, node.Config{Lease: lease, CallTimeout: 2 * lease})
	second := w.sem(client, "gpu", 1)
	w.subscribe(client)

	inside := newLive(1)
	p := w.take(first, nil)
	inside.enter(p)
	m.next("semaphore_acquire", unheard)
	q := w.queue(second, nil, 1)
	last := w.queue(third, nil, 2)
	require.NoError(t, p.Release(w.Within(patience))) // to second, which has not heard that it waits
	p = last.Wait(w)                                  // second's grant is over
	inside.enter(p)
	w.Await("second asks again", func() bool { return w.look("gpu").waiting() == 1 })
	beats := m.sent("semaphore_renew")
	w.Await("heartbeats have come", func() bool { return q.Over() || m.sent("semaphore_renew") >= beats+2 })
	if q.Over() {
		require.NoError(t, q.Err)
		inside.enter(q.Got)
	}
	inside.check(w)
	require.NoError(t, p.Err())
	require.NoError(t, p.Release(w.Within(patience)))
	p = q.Wait(w)
	require.NoError(t, p.Err())
	claim, _ := w.holder("gpu")
	require.Equal(t, p.ID(), claim)
	require.NoError(t, p.Release(w.Within(patience)))
}

// A push that comes so late that the grant may be over is not believed: the
// claimant asks first.
func TestALatePushIsNotBelieved(t *testing.T) {
	w := shared(t)
	m := w.meddler()
	cfg := node.Config{Lease: safe, CallTimeout: 2 * time.Second}
	first, third := w.sem(w.node(cfg), "gpu", 1), w.sem(w.node(cfg), "gpu", 1)
	client := w.nodeOn(m, cfg)
	w.subscribe(client)
	p := w.take(first, nil)
	q := w.queue(w.sem(client, "gpu", 1), nil, 1)
	last := w.queue(third, nil, 2)
	deliver := m.hold()
	defer deliver()
	m.always("semaphore_renew", deferred) // no heartbeat arrives either
	require.NoError(t, p.Release(w.Within(patience)))
	inside := newLive(1)
	p = last.Wait(w) // second's grant is over
	inside.enter(p)
	deliver()
	calls := m.meddled("semaphore_renew")
	w.Await("more calls", func() bool { return q.Over() || m.meddled("semaphore_renew") >= calls+3 })
	require.False(t, q.Over(), "it believed")
	m.always("semaphore_renew", passed)
	w.Await("it stands in line again", func() bool { return w.look("gpu").waiting() == 1 })
	require.NoError(t, p.Err())
	require.NoError(t, p.Release(w.Within(patience)))
	p = q.Wait(w)
	inside.enter(p)
	inside.check(w)
	require.NoError(t, p.Release(w.Within(patience)))
}

// subscribe has a node subscribe to its wake-ups, which it does when it first
// has to wait.
func (w *world) subscribe(n *node.Node) {
	w.Helper()
	s := w.sem(n, "subscribe", 1)
	p := w.take(s, nil)
	q := w.queue(s, nil, 1)
	w.subscribed(n)
	require.NoError(w, p.Release(w.Within(patience)))
	require.NoError(w, q.Wait(w).Release(w.Within(patience)))
}

// subscribed waits until a node has subscribed to its wake-ups.
func (w *world) subscribed(n *node.Node) {
	w.Helper()
	w.Await("the node has subscribed", func() bool {
		heard, err := w.do("PUBSUB", "NUMSUB", w.space.Wake(n.ID())).ToArray()
		require.NoError(w, err)
		listeners, err := heard[1].AsInt64()
		require.NoError(w, err)
		return listeners == 1
	})
}

// deaf is a connection on which no push comes.
type deaf struct{ rueidis.Client }

func (d deaf) Receive(ctx context.Context, cmd rueidis.Completed, _ func(rueidis.PubSubMessage)) error {
	return d.Client.Receive(ctx, cmd, func(rueidis.PubSubMessage) {})
}

// Pushes may all be lost: heartbeats bring the same news.
func TestWaitsEndWithoutPushes(t *testing.T) {
	w := shared(t)
	first := w.sem(w.node(node.Config{Lease: safe}), "gpu", 1)
	second := w.sem(w.nodeOn(deaf{w.server.Client(t)}, node.Config{Lease: safe}), "gpu", 1)
	p := w.take(first, nil)
	q := w.queue(second, nil, 1)
	require.NoError(t, p.Release(w.Within(patience)))
	require.NoError(t, q.Wait(w).Release(w.Within(patience)))
}

// A grant with a limit of its own is confirmed before the caller has it, however
// often the confirmation is lost; its limit runs once.
func TestALostConfirmationIsRepeated(t *testing.T) {
	w := shared(t)
	m := w.meddler()
	cfg := node.Config{Lease: 10 * time.Second, CallTimeout: 500 * time.Millisecond}
	first := w.sem(w.node(cfg), "gpu", 1)
	second := w.sem(w.nodeOn(m, cfg), "gpu", 1)
	p := w.take(first, nil)
	q := w.queue(second, &semaphore.AcquireOptions{MaxHold: time.Minute}, 1)
	m.next("semaphore_renew", unheard, deferred, unheard)
	require.NoError(t, p.Release(w.Within(patience)))
	p = q.Wait(w)
	require.Equal(t, 3, m.meddled("semaphore_renew"))
	limit := w.look("gpu").records[p.ID()].Limit
	m.deliver()
	require.Equal(t, limit, w.look("gpu").records[p.ID()].Limit, "the maximum hold began anew")
	require.NoError(t, p.Err())
	require.NoError(t, p.Release(w.Within(patience)))
	w.tombstones("gpu") // of an acquire that was slow
}
