package integration

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/semaphore"
)

// An acquire that the network delivers only after its caller has left, and after
// the cancel, must take nothing.
func TestALateAcquireMeetsATombstone(t *testing.T) {
	t.Parallel()
	for script, capacity := range map[string]int{"semaphore_acquire": 2, "thin_acquire": 1} {
		t.Run(script, func(t *testing.T) {
			b := shared(t)
			m := b.meddler()
			s := b.sem(b.clientOn(m, semaphore.Config{Lease: time.Minute, CallTimeout: time.Second}), "gpu", capacity)
			m.always(script, deferred) // also the attempts that follow, where the cancel takes its time
			ctx, cancel := context.WithCancel(t.Context())
			w := b.beginWith(ctx, s, nil)
			b.await("the acquire is on its way", func() bool { return m.meddled(script) > 0 })
			cancel()
			b.signalled("the caller to be let go", w.done)
			require.ErrorIs(t, w.err, context.Canceled)
			b.await("the cancel has run", func() bool { return len(b.look("gpu").stones) == 1 })
			m.deliver()
			v := b.whole("gpu")
			require.Empty(t, v.holds)
			require.Empty(t, v.alive)
			require.Len(t, v.stones, 1)
		})
	}
}

// An attempt that was answered only on the server, the next one, and a third that
// arrives after the release: one hold, once.
func TestAttemptsThatRunTwiceHoldOnce(t *testing.T) {
	b := shared(t)
	m := b.meddler()
	s := b.sem(b.clientOn(m, semaphore.Config{Lease: time.Minute, CallTimeout: time.Second}), "gpu", 2)
	m.next("semaphore_acquire", unheard, deferred)
	p := b.take(s, nil)
	require.Equal(t, 2, m.meddled("semaphore_acquire"))
	v := b.whole("gpu")
	require.Len(t, v.holds, 1)
	require.EqualValues(t, 1, v.state["used"])
	require.Equal(t, v.records[p.ID()].Fence, p.Fence())
	require.NoError(t, p.Release(b.within(patience)))
	m.deliver()
	v = b.whole("gpu")
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
			b := shared(t)
			m := b.meddler()
			cfg := semaphore.Config{Lease: time.Minute, CallTimeout: time.Second}
			cfg.Retry.Attempts = 2
			s := b.sem(b.clientOn(m, cfg), "gpu", test.capacity)
			p := b.take(s, nil)
			m.next(test.script, test.fate, test.fate)
			require.Error(t, p.Release(b.within(patience)))
			require.Error(t, p.Err(), "what was to be released is still believed in")
			require.NoError(t, p.Release(b.within(patience)))
			require.NoError(t, p.Release(b.within(patience)))
			m.deliver()
			b.tombstones("gpu") // of the permit, if its acquire was slow too
		})
	}
}

// A restore that the network delivers only after its claim was cancelled must not
// bring the claim back.
func TestALateRestoreBringsNothingBack(t *testing.T) {
	b := shared(t)
	m := b.meddler()
	holder := b.sem(b.client(semaphore.Config{Lease: time.Minute}), "gpu", 1)
	s := b.sem(b.clientOn(m, semaphore.Config{Lease: safe}), "gpu", 1)
	b.take(holder, nil)
	ctx, cancel := context.WithCancel(t.Context())
	w := b.beginWith(ctx, s, nil)
	b.await("it waits", func() bool { return b.look("gpu").waiting() == 1 })
	m.next("semaphore_restore", deferred)
	b.forget("gpu")
	b.await("the restore is on its way", func() bool { return m.meddled("semaphore_restore") == 1 })
	cancel()
	b.signalled("the caller to be let go", w.done)
	b.await("the cancel has run", func() bool { return m.sent("semaphore_release") == 1 })
	m.deliver()
	v := b.whole("gpu")
	require.Empty(t, v.alive, "a ghost waits")
	require.Empty(t, v.holds, "a ghost holds")
}

// forget does to a name what FLUSHALL does to a server.
func (b *bed) forget(name string) {
	b.Helper()
	b.do("DEL", b.stateKey(name), b.lineKey(name))
}

// A hand-off may come while the reply of an acquire is lost, and be over before
// the acquire is repeated. Its push is not about the place that the repetition
// gets.
func TestAPushForAnEarlierAttemptIsNotBelieved(t *testing.T) {
	b := shared(t)
	const lease = safe
	m := b.meddler()
	first := b.sem(b.client(semaphore.Config{Lease: lease}), "gpu", 1)
	third := b.sem(b.client(semaphore.Config{Lease: lease}), "gpu", 1)
	client := b.clientOn(m, semaphore.Config{Lease: lease, CallTimeout: 2 * lease})
	second := b.sem(client, "gpu", 1)
	b.subscribe(client)

	inside := newLive(1)
	p := b.take(first, nil)
	inside.enter(p)
	m.next("semaphore_acquire", unheard)
	w := b.queue(second, nil, 1)
	last := b.queue(third, nil, 2)
	require.NoError(t, p.Release(b.within(patience))) // to second, which has not heard that it waits
	p = last.got(b)                                   // second's grant is over
	inside.enter(p)
	b.await("second asks again", func() bool { return b.look("gpu").waiting() == 1 })
	beats := m.sent("semaphore_renew")
	b.await("heartbeats have come", func() bool { return w.over() || m.sent("semaphore_renew") >= beats+2 })
	if w.over() {
		require.NoError(t, w.err)
		inside.enter(w.permit)
	}
	inside.check(b)
	require.NoError(t, p.Err())
	require.NoError(t, p.Release(b.within(patience)))
	p = w.got(b)
	require.NoError(t, p.Err())
	claim, _ := b.holder("gpu")
	require.Equal(t, p.ID(), claim)
	require.NoError(t, p.Release(b.within(patience)))
}

// A push that comes so late that the grant may be over is not believed: the
// claimant asks first.
func TestALatePushIsNotBelieved(t *testing.T) {
	b := shared(t)
	m := b.meddler()
	cfg := semaphore.Config{Lease: safe, CallTimeout: 2 * time.Second}
	first, third := b.sem(b.client(cfg), "gpu", 1), b.sem(b.client(cfg), "gpu", 1)
	client := b.clientOn(m, cfg)
	b.subscribe(client)
	p := b.take(first, nil)
	w := b.queue(b.sem(client, "gpu", 1), nil, 1)
	last := b.queue(third, nil, 2)
	deliver := m.hold()
	defer deliver()
	m.always("semaphore_renew", deferred) // no heartbeat arrives either
	require.NoError(t, p.Release(b.within(patience)))
	inside := newLive(1)
	p = last.got(b) // second's grant is over
	inside.enter(p)
	deliver()
	calls := m.meddled("semaphore_renew")
	b.await("more calls", func() bool { return w.over() || m.meddled("semaphore_renew") >= calls+3 })
	require.False(t, w.over(), "it believed")
	m.always("semaphore_renew", passed)
	b.await("it stands in line again", func() bool { return b.look("gpu").waiting() == 1 })
	require.NoError(t, p.Err())
	require.NoError(t, p.Release(b.within(patience)))
	p = w.got(b)
	inside.enter(p)
	inside.check(b)
	require.NoError(t, p.Release(b.within(patience)))
}

// subscribe has a client subscribe to its wake-ups, which it does when it first
// has to wait.
func (b *bed) subscribe(c *semaphore.Client) {
	b.Helper()
	s := b.sem(c, "subscribe", 1)
	p := b.take(s, nil)
	w := b.queue(s, nil, 1)
	b.subscribed(c)
	require.NoError(b, p.Release(b.within(patience)))
	require.NoError(b, w.got(b).Release(b.within(patience)))
}

// subscribed waits until a client has subscribed to its wake-ups.
func (b *bed) subscribed(c *semaphore.Client) {
	b.Helper()
	b.await("the client has subscribed", func() bool {
		heard, err := b.do("PUBSUB", "NUMSUB", b.space.Wake(c.Node())).ToArray()
		require.NoError(b, err)
		n, err := heard[1].AsInt64()
		require.NoError(b, err)
		return n == 1
	})
}

// deaf is a connection on which no push comes.
type deaf struct{ rueidis.Client }

func (d deaf) Receive(ctx context.Context, cmd rueidis.Completed, _ func(rueidis.PubSubMessage)) error {
	return d.Client.Receive(ctx, cmd, func(rueidis.PubSubMessage) {})
}

// Pushes may all be lost: heartbeats bring the same news.
func TestWaitsEndWithoutPushes(t *testing.T) {
	b := shared(t)
	first := b.sem(b.client(semaphore.Config{Lease: safe}), "gpu", 1)
	second := b.sem(b.clientOn(deaf{b.server.Client(t)}, semaphore.Config{Lease: safe}), "gpu", 1)
	p := b.take(first, nil)
	w := b.queue(second, nil, 1)
	require.NoError(t, p.Release(b.within(patience)))
	require.NoError(t, w.got(b).Release(b.within(patience)))
}

// A grant with a limit of its own is confirmed before the caller has it, however
// often the confirmation is lost; its limit runs once.
func TestALostConfirmationIsRepeated(t *testing.T) {
	b := shared(t)
	m := b.meddler()
	cfg := semaphore.Config{Lease: 10 * time.Second, CallTimeout: 500 * time.Millisecond}
	first := b.sem(b.client(cfg), "gpu", 1)
	second := b.sem(b.clientOn(m, cfg), "gpu", 1)
	p := b.take(first, nil)
	w := b.queue(second, &semaphore.AcquireOptions{MaxHold: time.Minute}, 1)
	m.next("semaphore_renew", unheard, deferred, unheard)
	require.NoError(t, p.Release(b.within(patience)))
	p = w.got(b)
	require.Equal(t, 3, m.meddled("semaphore_renew"))
	limit := b.look("gpu").records[p.ID()].Limit
	m.deliver()
	require.Equal(t, limit, b.look("gpu").records[p.ID()].Limit, "the maximum hold began anew")
	require.NoError(t, p.Err())
	require.NoError(t, p.Release(b.within(patience)))
	b.tombstones("gpu") // of an acquire that was slow
}
