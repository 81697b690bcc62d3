package qlock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// requireForm fails unless the door's name has the form, with the Redis keys of that.
func (w *world) requireForm(thin bool, what ...any) {
	w.T.Helper()
	require.Equal(w.T, thin, w.Thin(), what...)
	keys := []string{stateKey}
	if !thin {
		keys = append(keys, lineKey)
	}
	require.ElementsMatch(w.T, keys, w.Keys(), what...)
	w.Expiry() // of both keys at once
}

// write runs a script that writes the door, as a process would that a test does not have.
func (w *world) write(script string, args ...string) *scriptkit.Reply {
	w.T.Helper()
	r := w.Call(script, append([]string{"60000", "berth:wake:", door}, args...)...)
	return &r
}

// thinly runs a script of thin names.
func (w *world) thinly(script string, args ...string) *scriptkit.Reply {
	w.T.Helper()
	r := w.CallOn([]string{stateKey}, script, args...)
	return &r
}

// comesAndGoes has somebody hold the door, and give it back a millisecond later, by the general scripts.
func (w *world) comesAndGoes() {
	w.T.Helper()
	id := fmt.Sprint("x.", w.Now().Microseconds())
	require.Contains(w.T, []string{"granted", scriptkit.Plain}, w.ask(claim{node: "x", id: id}).Status())
	w.Advance(ms)
	require.Empty(w.T, w.serve(id))
}

// What a thin name cannot express makes it fat in the same call. The hold that there was goes on, and
// once the name has been calm for so long it is thin again.
func TestAThinNameBecomesFatWhereItHasToAndThinAgain(t *testing.T) {
	enters := func(how qlock.Conflict) func(w *world, n, other *proc, l *qlock.Lock) func() {
		return func(w *world, n, _ *proc, l *qlock.Lock) func() {
			inner := n.takeFor("me", &qlock.LockOptions{Conflict: how})
			require.Equal(w.T, l.Fence(), inner.Fence())
			return func() { release(w.T, inner); release(w.T, l) }
		}
	}
	each(t, map[string]func(w *world, n, other *proc, l *qlock.Lock) (end func()){
		"its owner enters once more":    enters(qlock.WorkThrough),
		"its owner enters, and extends": enters(qlock.ExtendAndWorkThrough),
		"it is extended": func(w *world, _, _ *proc, l *qlock.Lock) func() {
			require.NoError(w.T, l.Extend(ctx, time.Second))
			left, _ := w.LeftOf(l.ID())
			require.Equal(w.T, lease+time.Second, left)
			return func() { release(w.T, l) }
		},
		"it is detached": func(w *world, _, other *proc, l *qlock.Lock) func() {
			token := detach(w.T, l)
			return func() { release(w.T, other.resume(token)) }
		},
		"it is resumed elsewhere": func(w *world, _, other *proc, l *qlock.Lock) func() {
			resumed := other.resume(detach(w.T, l))
			w.Advance(lease)
			w.honest(resumed)
			return func() { release(w.T, resumed) }
		},
		"an operator extends it": func(w *world, _, other *proc, l *qlock.Lock) func() {
			require.NoError(w.T, other.extend(ctx, door, time.Second))
			return func() { release(w.T, l) }
		},
		"an operator ends it": func(w *world, _, other *proc, l *qlock.Lock) func() {
			require.NoError(w.T, other.end(ctx, door))
			return func() { <-l.Done(); require.ErrorIs(w.T, l.Err(), berth.ErrReleased) }
		},
		"an operator ends all that its node has": func(w *world, n, other *proc, l *qlock.Lock) func() {
			require.NoError(w.T, testkit.Second(other.Operator().Release(ctx, berth.Target{Node: n.ID()})))
			return func() { <-l.Done(); require.ErrorIs(w.T, l.Err(), berth.ErrReleased) }
		},
		"somebody waits": func(w *world, _, other *proc, l *qlock.Lock) func() {
			q := other.queue(nil)
			return func() { release(w.T, l); release(w.T, q.Granted(w.Now())) }
		},
		"somebody waits, and goes to the end of the line": func(w *world, _, other *proc, l *qlock.Lock) func() {
			q := other.queue(&qlock.LockOptions{RequeueEvery: time.Second})
			w.Advance(1500 * ms)
			require.Equal(w.T, 1, other.Count("lock_requeue"))
			return func() { release(w.T, l); release(w.T, q.Granted(w.Now())) }
		},
		"a claim leaves that never came": func(w *world, _, _ *proc, l *qlock.Lock) func() {
			w.releasesLate("not_held", "late", "late.1")
			require.Equal(w.T, "gone", w.ask(claim{node: "late", id: "late.1"}).Status())
			return func() { release(w.T, l) }
		},
		"it leaves, and may come once more": func(w *world, n, _ *proc, l *qlock.Lock) func() {
			w.releasesLate("released", n.ID(), l.ID())
			require.Equal(w.T, "gone", w.ask(claim{node: n.ID(), id: l.ID()}).Status())
			return func() { _ = l.Release(ctx) }
		},
		"somebody stands in line again": func(w *world, n, _ *proc, l *qlock.Lock) func() {
			came := w.Began.Add(-time.Second).UnixMilli()
			r := engine.Record{Weight: 1, Wait: time.Second, Lease: time.Second, Phase: 'w', Node: "r", Ticket: came}
			reply := w.write("lock_restore", "r", "1", "r.1", fmt.Sprintf("254 %013d", came), state.Text(&r))
			require.Equal(w.T, "waiting", reply.Str(6))
			require.Equal(w.T, []string{"r.1"}, w.line(n))
			return func() { w.Advance(time.Second); release(w.T, l) } // it has died
		},
	}, func(t *testing.T, w *world, play func(w *world, n, other *proc, l *qlock.Lock) (end func())) {
		n, other := w.node(), w.node()
		release(t, n.take(nil))
		w.requireForm(true, "idle")
		w.Advance(time.Second)
		l := n.takeFor("me", &qlock.LockOptions{MaxHold: time.Hour, Meta: map[string]string{"why": "a test"}})
		w.requireForm(true, "held")
		require.Equal(t, l.Fence(), w.Field("fence"))
		was := n.info().entries[0]
		w.Advance(10 * ms)

		end := play(w, n, other, l)
		w.requireForm(false, "in use")
		if entries := n.info().entries; len(entries) > 0 {
			is := entries[0]
			require.Equal(t, []any{was.ID, was.Owner, was.Fence, was.Lease, was.MaxHold, was.Granted, was.Meta},
				[]any{is.ID, is.Owner, is.Fence, is.Lease, is.MaxHold, is.Granted, is.Meta})
			if is.Node == was.Node && !is.Detached {
				w.honest(l)
			}
		}
		end()
		w.requireForm(false, "so soon")
		fence := w.Field("fence")
		require.GreaterOrEqual(t, fence, l.Fence())

		w.Advance(time.Minute) // the longest that a tombstone stays
		w.sweep()
		w.Advance(11 * time.Second)
		w.comesAndGoes()
		w.requireForm(true, "it has been calm")
		w.RequireIdle()
		require.Greater(t, w.Field("fence"), fence)
		w.Advance(ms)
		require.Greater(t, n.take(nil).Fence(), fence)
		w.requireForm(true, "held again")
	})
}

// Tombstones end without anybody's sweep, too: who comes and goes now and then has a thin name again.
func TestANameWithATombstoneBecomesThinOnceThatHasEnded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.ask(claim{node: "h", id: "h.1"})
		w.releasesLate("released", "h", "h.1")
		for w.Now() < time.Minute {
			w.requireForm(false)
			require.Equal(t, "gone", w.ask(claim{node: "h", id: "h.1"}).Status())
			w.comesAndGoes()
			w.Advance(5 * time.Second)
		}
		for range 5 {
			w.comesAndGoes()
			w.Advance(10 * time.Second)
		}
		w.requireForm(true)
	})
}

// What only looks, or is refused, leaves a name as it is: thin, and with its expiry.
func TestWhatIsRefusedOrOnlyLooksWritesNothingOnAThinName(t *testing.T) {
	call := func(want, script string, args ...string) func(w *world, n *proc) {
		return func(w *world, _ *proc) {
			r := w.write(script, args...)
			all := []string{r.Status()}
			if r.Status() == "renewed" {
				all = append(all, r.Str(4))
			}
			require.Equal(w.T, want, strings.Join(all, " "))
		}
	}
	both := map[string]func(w *world, n *proc){
		"Sweep":                 func(w *world, n *proc) { _, err := n.Operator().Sweep(ctx, keyspace.Lock); require.NoError(w.T, err) },
		"an unknown heartbeat":  call("renewed unknown", "lock_renew", "x", "x.1", "beat"),
		"an unknown renewal":    call("renewed unknown", "lock_renew", "x", "x.1", "renew"),
		"an unknown extension":  call("renewed unknown", "lock_renew", "x", "x.1", "extend 1000 id"),
		"an unknown detach":     call("renewed unknown", "lock_renew", "x", "x.1", "detach"),
		"an unknown release":    func(w *world, _ *proc) { w.releases("not_held", "x", "x.1") },
		"an unknown forced one": call("not_held", "lock_force_release", "", "x.1", "60000", "0"),
		"an unknown resume":     call("not_held", "lock_resume", "x", "x.1", "y", "beat"),
		"an unknown requeue":    call("not_waiting", "lock_requeue", "x", "x.1", "1", "254"),
		"a restore of no claim": call("restored", "lock_restore", "x", "1"),
		"a sweep":               call("swept", "lock_sweep", "x", "0"),
		"the scripts of thin names": func(w *world, _ *proc) {
			require.Equal(w.T, "fat", w.thinly("thin_release", "x.1").Status())
			r := w.thinly("thin_renew", "60000", "x.1")
			require.Zero(w.T, r.Int(1), "nothing is left of it")
		},
	}
	held := map[string]func(w *world, n *proc){
		"TryLock": func(w *world, n *proc) {
			require.ErrorIs(w.T, testkit.Second(n.TryLock(ctx, door, nil)), berth.ErrBusy)
		},
		"its owner's deadlock": func(w *world, n *proc) {
			_, err := n.Lock(berth.WithOwner(ctx, "me"), door, &qlock.LockOptions{Conflict: qlock.FailDeadlock})
			require.ErrorIs(w.T, err, berth.ErrDeadlock)
		},
		"another fence, forced":         call("other", "lock_force_hold", "1", "60000"),
		"another fence, extended":       call("other", "lock_extend", "1000", "id", "1"),
		"another node's heartbeat":      func(w *world, n *proc) { call("renewed taken", "lock_renew", "x", w.held1(n), "beat")(w, n) },
		"another node's release":        func(w *world, n *proc) { w.releases("taken", "x", w.held1(n)) },
		"another node's forced release": func(w *world, n *proc) { call("not_held", "lock_force_release", "x", w.held1(n), "60000", "0")(w, n) },
		"its acquire once more": func(w *world, n *proc) {
			id := w.held1(n)
			node, _, _ := strings.Cut(id, ".")
			require.Equal(w.T, "granted", w.ask(claim{node: node, id: id}).Status())
			require.Equal(w.T, "foreign", w.ask(claim{node: "x", id: id}).Status())
		},
	}
	idle := map[string]func(w *world, n *proc){
		"Release": func(w *world, n *proc) { require.ErrorIs(w.T, n.end(ctx, door), berth.ErrNotHeld) },
		"Extend": func(w *world, n *proc) {
			require.ErrorIs(w.T, n.extend(ctx, door, time.Second), berth.ErrNotHeld)
		},
	}
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		l := n.takeFor("me", &qlock.LockOptions{NoRenew: true})
		for _, of := range []map[string]func(w *world, n *proc){both, held} {
			w.writeNothing(other, of)
		}
		w.Until(lease)
		require.Error(t, l.Err())
		for _, of := range []map[string]func(w *world, n *proc){both, idle} {
			w.writeNothing(other, of) // its hold has expired, and is there
		}
		release(t, other.take(nil))
		for _, of := range []map[string]func(w *world, n *proc){both, idle} {
			w.writeNothing(other, of)
		}
	})
}

// held1 is the claim that holds the door.
func (w *world) held1(n *proc) string { return n.info().entries[0].ID }

func (w *world) writeNothing(n *proc, all map[string]func(w *world, n *proc)) {
	w.T.Helper()
	before := w.kept()
	for name, do := range all {
		w.Advance(ms)
		do(w, n)
		w.requireForm(true, name)
		require.Equal(w.T, before, w.kept(), name)
	}
}

// After a failover a fence may lie ahead of the clock. What follows is numbered above it, in the fat
// form, until the clock has passed it.
func TestAFenceThatLiesAheadOfTheClockIsOutnumbered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		ahead := w.Began.Add(20 * time.Second).UnixMicro()
		w.Do("SET", stateKey, fmt.Sprintf("%016d", ahead), "PX", "60000")
		for i := range 4 {
			l := n.take(nil)
			require.Equal(t, ahead+1+int64(i), l.Fence())
			w.requireForm(false)
			release(t, l)
			w.Advance(2 * time.Second)
		}
		w.Until(19 * time.Second)
		w.comesAndGoes()
		w.requireForm(false)
		w.Until(20 * time.Second)
		w.comesAndGoes()
		w.requireForm(true)
		require.Greater(t, n.take(nil).Fence(), ahead+5)
	})
}

// releases sends a release, and is answered so.
func (w *world) releases(want, node, claim string) {
	w.T.Helper()
	r := w.Releases("lock", node, claim, 0)
	require.Equal(w.T, want, r.Status())
}

// releasesLate sends one whose acquire may still be on its way.
func (w *world) releasesLate(want, node, claim string) {
	w.T.Helper()
	r := w.Releases("lock", node, claim, time.Minute.Milliseconds())
	require.Equal(w.T, want, r.Status())
}
