package integration

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/scripts/composed"
)

// late is a name in its fat form, a connection that loses and delays calls, and a process on one that is whole.
type late struct {
	*world
	m     *meddler
	other *user
}

func (w *world) late() *late {
	w.Helper()
	l := &late{w, w.meddler(), w.use(node.Config{})}
	h := l.hold(l.other, terms{})
	ctx, leave := context.WithCancel(l.Within(patience))
	q := l.holdLater(ctx, l.other, terms{})
	l.awaitInLine(l.name(), 1, q.Over)
	leave()
	l.Signalled("the claim to leave", q.Done)
	l.release(h)
	require.False(l, l.look(l.name()).thin)
	return l
}

// script is that of a verb.
func (l *late) script(verb string) string {
	return map[keyspace.Kind]string{keyspace.Sem: "semaphore_", keyspace.Lock: "lock_", keyspace.Pool: "pool_"}[l.kind] + verb
}

// meets is a user whose calls of a script meet fates.
func (l *late) meets(cfg node.Config, script string, fates ...fate) *user {
	l.Helper()
	u := l.useOn(l.m, cfg)
	l.m.next(script, fates...)
	return u
}

// nobody checks that nobody holds or waits.
func (l *late) nobody() {
	l.Helper()
	v := l.whole(l.name())
	require.Empty(l, v.holds, "a ghost holds")
	require.Empty(l, v.alive, "a ghost waits")
}

// lateCalls are calls that nobody hears the answer of, or that come late: each does what it does once.
var lateCalls = map[string]func(l *late){
	"attempts of an acquire hold once": func(l *late) {
		acquire := l.script("acquire")
		u := l.meets(node.Config{CallTimeout: time.Second}, acquire, unheard, deferred)
		h := l.hold(u, terms{})
		require.Equal(l, 2, l.m.meddled(acquire))
		v := l.whole(l.name())
		require.Len(l, v.holds, 1)
		require.EqualValues(l, 1, v.state["used"])
		require.Equal(l, v.records[h.ID()].Fence, h.Fence())
		l.release(h)
		l.m.deliver()
		l.nobody()
	},
	"an acquire that comes after its cancel takes nothing": func(l *late) {
		acquire := l.script("acquire")
		u := l.meets(node.Config{CallTimeout: time.Second}, acquire)
		l.m.always(acquire, deferred) // also the attempts that follow, where the cancel takes its time
		ctx, cancel := context.WithCancel(l.Within(patience))
		q := l.holdLater(ctx, u, terms{})
		l.Await("the acquire is on its way", func() bool { return l.m.meddled(acquire) > 0 })
		cancel()
		q.Fails(l, context.Canceled)
		l.Await("the cancel has run", func() bool { return len(l.look(l.name()).stones) == 1 })
		l.m.deliver()
		l.nobody()
		require.Len(l, l.look(l.name()).stones, 1)
	},
	"a release that had run can be repeated":     func(l *late) { l.releasedAgain(unheard) },
	"a release that had not run can be repeated": func(l *late) { l.releasedAgain(deferred) },
	"a restore that comes after the cancel brings nothing back": func(l *late) {
		restore := l.script("restore")
		u := l.meets(node.Config{Lease: safe}, restore, deferred)
		l.hold(l.other, terms{})
		ctx, cancel := context.WithCancel(l.Within(patience))
		q := l.holdLater(ctx, u, terms{})
		l.awaitInLine(l.name(), 1, q.Over)
		released := l.m.sent(l.script("release"))
		l.forget(l.name())
		l.Await("the restore is on its way", func() bool { return l.m.meddled(restore) == 1 })
		cancel()
		q.Fails(l, context.Canceled)
		l.Await("the cancel has run", func() bool { return l.m.sent(l.script("release")) > released })
		l.m.deliver()
		l.nobody()
	},
	// A grant with a limit of its own is confirmed before the caller has it.
	"a confirmation counts once": func(l *late) {
		renew := l.script("renew")
		u := l.meets(node.Config{Lease: safe, CallTimeout: 500 * time.Millisecond}, renew)
		h, q := l.hold(l.other, terms{}), l.holdQueue(u, terms{MaxHold: time.Minute}, 1)
		l.m.next(renew, unheard, deferred, unheard)
		l.release(h)
		h = q.Wait(l.world)
		require.Equal(l, 3, l.m.meddled(renew))
		limit := l.look(l.name()).records[h.ID()].Limit
		l.m.deliver()
		require.Equal(l, limit, l.look(l.name()).records[h.ID()].Limit, "the maximum hold began anew")
		require.NoError(l, h.Err())
		l.release(h)
	},
	"an operator spares the next in line": func(l *late) {
		force := l.script("force_release")
		u := l.meets(node.Config{CallTimeout: time.Second}, force, unheard)
		h, q := l.hold(u, terms{}), l.holdQueue(l.other, terms{}, 1)
		last := l.holdQueue(l.other, terms{}, 2)
		_, err := u.Operator().Release(l.Within(patience), l.target(h))
		require.NoError(l, err)
		require.Equal(l, 1, l.m.meddled(force))
		next := q.Wait(l.world)
		require.NoError(l, next.Renew(l.Within(patience)))
		require.False(l, last.Over())
		l.ended(h, berth.ErrReleased)
		l.release(next)
		l.release(last.Wait(l.world))
	},
	"a token is resumed once": func(l *late) {
		resume := l.script("resume")
		u := l.meets(node.Config{CallTimeout: time.Second}, resume, unheard)
		h := l.hold(l.other, terms{})
		token, err := h.Detach(l.Within(patience))
		require.NoError(l, err)
		again, err := u.resume(l.Within(patience), token)
		require.NoError(l, err)
		require.Equal(l, 1, l.m.meddled(resume))
		require.Equal(l, h.Fence(), again.Fence())
		l.release(again)
	},
}

// releasedAgain repeats a release that has returned an error, as it was not answered.
func (l *late) releasedAgain(f fate) {
	l.Helper()
	cfg := node.Config{CallTimeout: safe / 2, Retry: berth.Retry{Attempts: 2}} // of two attempts one is answered, whatever the machine does
	u := l.meets(cfg, l.script("release"), f, f)
	h := l.hold(u, terms{})
	require.Error(l, h.Release(l.Within(patience)))
	require.Error(l, h.Err(), "what was to be released is still believed in")
	l.release(h, h)
	l.m.deliver()
	l.nobody()
}

func TestLateAndUnheardCallsCountOnce(t *testing.T) {
	t.Parallel()
	for what, run := range lateCalls {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			overKinds(t, shared, func(w *world) {
				l := w.late()
				run(l)
				w.tombstones(w.name())
			})
		})
	}
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

// fate is what a meddler does to one call.
type fate int

const (
	passed   fate = iota
	unheard       // it runs, and its answer is lost
	deferred      // it runs only when the test says so, and nobody hears the answer
)

// meddler is a connection that loses and delays chosen calls, as a network does
// by chance.
type meddler struct {
	rueidis.Client

	mu   sync.Mutex
	plan map[string][]fate // guarded by mu: by script, for its next calls
	rule map[string]fate   // guarded by mu: by script, for those after
	late []func()          // guarded by mu: the calls that are deferred
	met  map[string]int    // guarded by mu: how many calls had a fate other than passed
	runs map[string]int    // guarded by mu: how many calls went through as they were
}

// meddler returns a connection to the world's server. The server knows all scripts
// by then, so that a call is one command.
func (w *world) meddler() *meddler {
	w.Helper()
	w.load()
	return &meddler{Client: w.server.Client(w.T), plan: map[string][]fate{}, rule: map[string]fate{}, met: map[string]int{}, runs: map[string]int{}}
}

var library = composed.Library()

// names are the scripts' names by what EVALSHA and EVAL call them.
var names = func() map[string]string {
	all := map[string]string{}
	for _, s := range library.Scripts() {
		all[s.SHA], all[s.Source()] = s.Name, s.Name
	}
	return all
}()

// isScript says whether a command runs a script.
func isScript(words []string) bool {
	return len(words) > 2 && (words[0] == "EVALSHA" || words[0] == "EVAL")
}

// locked does something with what mu guards.
func (m *meddler) locked(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
}

// next says what the next calls of a script will meet.
func (m *meddler) next(script string, fates ...fate) {
	m.locked(func() { m.plan[script] = append(m.plan[script], fates...) })
}

// from now on all calls of a script meet this, after those that next names.
func (m *meddler) always(script string, f fate) { m.locked(func() { m.rule[script] = f }) }

// meddled is how many calls of a script have met their fate.
func (m *meddler) meddled(script string) (n int) {
	m.locked(func() { n = m.met[script] })
	return n
}

// sent is how many calls of a script went through, answered.
func (m *meddler) sent(script string) (n int) {
	m.locked(func() { n = m.runs[script] })
	return n
}

// deliver sends all deferred calls, in their order, and waits for them.
func (m *meddler) deliver() {
	var late []func()
	m.locked(func() { late, m.late = m.late, nil })
	for _, send := range late {
		send()
	}
}

// Do is what scriptkit calls.
func (m *meddler) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	words := slices.Clone(cmd.Commands())
	switch m.fate(words) {
	case unheard:
		m.Client.Do(context.Background(), cmd)
	case deferred:
		again := func() { m.Client.Do(context.Background(), m.Client.B().Arbitrary(words...).Build()) }
		m.locked(func() { m.late = append(m.late, again) })
	default:
		result := m.Client.Do(ctx, cmd)
		if len(words) > 1 {
			m.locked(func() { m.runs[names[words[1]]]++ })
		}
		return result
	}
	<-ctx.Done()
	return rueidis.NewErrorResult(ctx.Err())
}

func (m *meddler) fate(words []string) fate {
	if !isScript(words) {
		return passed
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	script := names[words[1]]
	f := m.rule[script]
	if plan := m.plan[script]; len(plan) > 0 {
		f, m.plan[script] = plan[0], plan[1:]
	}
	if f != passed {
		m.met[script]++
	}
	return f
}
