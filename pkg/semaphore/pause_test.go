package semaphore_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// paused is how long most pauses of these tests last.
const paused = 10 * lease

func (n *proc) pause(lasts time.Duration) {
	n.w.T.Helper()
	require.NoError(n.w.T, n.Operator().Pause(context.Background(), keyspace.Sem, gpu, lasts, "migration"))
}

func (n *proc) unpause() {
	n.w.T.Helper()
	require.NoError(n.w.T, n.Operator().Unpause(context.Background(), keyspace.Sem, gpu))
}

// A name is thin again once it has been calm for a while, and it is not known any more what was changed; not while it is paused.
func TestAPausedNameDoesNotBecomeThin(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		release(t, n.take(1, nil))
		n.pause(2 * time.Hour)
		q := n.queue(1, nil)
		w.Advance(75 * time.Second)
		q.Cancel(nil)
		<-q.Done
		w.Advance(ms)
		require.False(t, w.Thin())
		require.GreaterOrEqual(t, w.Expiry(), 2*time.Hour+time.Minute)
	})
}

func TestAnUnpauseHandsOnInItsRun(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		n, ops := w.node(), w.node()
		ops.pause(paused)
		q, second := n.queue(1, nil), n.queue(1, nil)
		w.Advance(lease)
		testkit.RequirePending(w.T, q)
		ops.unpause()
		release(w.T, q.Granted(lease))
		held, third := second.Granted(lease), n.queue(1, nil)
		ops.pause(time.Second)
		ops.pause(3 * time.Second) // further off
		ops.pause(50 * ms)         // and nearer: a waiter hears of a pause that ends before its next heartbeat
		release(w.T, held)
		third.GrantedBy(lease + 50*ms)
	})
}

func TestALateCopyOfAPauseOrAnUnpauseIsStale(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		a, b := w.node(), w.node()
		first := w.copied(a, "pause", func() { a.pause(paused) })
		require.Equal(w.T, "paused", func() string { r := first(); return r.Status() }(), "its own repeat")
		ended := w.copied(b, "pause", b.unpause)
		w.refused(first, "unpaused")
		w.Advance(ms)
		again := w.copied(a, "pause", func() { a.pause(lease) })
		w.refused(ended, "paused: migration")
		w.refused(first, "paused: migration")
		require.NoError(w.T, a.resize(3), "another matter")
		r := again()
		require.Equal(w.T, "paused", r.Status())
		w.Advance(lease)
		r = again()
		require.Equal(w.T, "unpaused", r.Status(), "it has ended by itself")
		require.Zero(w.T, r.Int(1))
	})
}

// Another call comes between the look of a call and its script.
func TestAPauseThatAnotherHasOvertakenSaysSo(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		a, b := w.node(), w.node()
		a.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "semaphore_pause" {
				b.pause(lease)
			}
			return link.Pass
		})
		var stale *berth.OvertakenError
		require.ErrorAs(w.T, a.Operator().Unpause(context.Background(), keyspace.Sem, gpu), &stale)
		require.Equal(w.T, berth.OvertakenError{Name: gpu, Changed: "paused: migration"}, *stale)
	})
}

func TestAPauseIsRefusedThatCannotBe(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		ops := w.node().Operator()
		for field, err := range map[string]error{
			"lasts":  ops.Pause(context.Background(), keyspace.Sem, gpu, 0, ""),
			"lasts ": ops.Pause(context.Background(), keyspace.Sem, gpu, berth.Forever, ""),
			" lasts": ops.Pause(context.Background(), keyspace.Sem, gpu, time.Microsecond, ""),
			"reason": ops.Pause(context.Background(), keyspace.Sem, gpu, time.Second, string(make([]byte, 513))),
			"name":   ops.Pause(context.Background(), keyspace.Sem, "", time.Second, ""),
			"name ":  ops.Unpause(context.Background(), keyspace.Sem, ""),
		} {
			var bad *berth.ConfigError
			require.ErrorAs(w.T, err, &bad)
			require.Contains(w.T, field, bad.Field)
		}
		require.Empty(w.T, w.Keys())
	})
}

// A Pause does without the notice that it cannot read. An Unpause would not last: it is refused.
func TestANameIsPausedThoughTheNoticeCannotBeRead(t *testing.T) {
	for name, fate := range map[string]link.Fate{"refused": link.Refuse("NOPERM no permissions"), "unanswered": link.LoseRequest} {
		inWorldOf(t, name, func(_ *testing.T, w *world) {
			n, ops := w.node(), w.node()
			ops.OnCommand(func(c link.Command) link.Fate {
				if c.Name == "HMGET" && c.Args[0] == "berth:notice:{all}:state" {
					return fate
				}
				return link.Pass
			})
			ops.pause(time.Hour)
			require.LessOrEqual(w.T, w.Now(), 2*time.Second)
			q := n.queue(1, nil)
			require.Error(w.T, ops.Operator().Unpause(context.Background(), keyspace.Sem, gpu))
			require.True(w.T, q.Pending(), "nothing was changed")
			ops.OnCommand(nil)
			ops.unpause()
			q.GrantedBy(w.Now())
		})
	}
}

// A wait that ends by its own time says that its name is paused, and for how long: nobody else is in the way.
func TestAWaitThatEndsInAPauseIsToldThePause(t *testing.T) {
	type row struct {
		before, lasts time.Duration // when the name is paused, and for how long
		told          bool
	}
	each(t, map[string]row{
		"paused before it came":          {0, paused, true},
		"paused while it waits":          {lease + lease/2, paused, true},
		"a pause that has ended by then": {0, lease, false},
	}, func(_ *testing.T, w *world, test row) {
		n, ops := w.node(), w.node()
		n.take(1, nil)
		const waits = 2 * lease
		queue := func() *wait { return n.queue(1, &semaphore.AcquireOptions{MaxWait: waits}) }
		var q *wait
		if test.before > 0 {
			q = queue()
		}
		w.Until(test.before)
		ops.pause(test.lasts)
		if q == nil {
			q = queue()
		}
		refused := q.Refused(waits, berth.ReasonTimedOut)
		if !test.told {
			require.Nil(w.T, refused.Pause)
			return
		}
		left := test.before + test.lasts - waits
		require.Equal(w.T, &berth.Pause{Left: left, Since: w.Began.Add(test.before), Reason: "migration"}, refused.Pause)
		require.ErrorContains(w.T, refused, "timed out after 12s; paused for "+left.String()+": migration")
	})
}

// The end of a wait whose server has fallen silent is not put off by asking for a pause.
func TestAWaitEndsInTimeThoughNobodySaysWhetherItsNameIsPaused(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		n, ops := w.node(), w.node()
		ops.pause(paused)
		q := n.queue(1, &semaphore.AcquireOptions{MaxWait: lease})
		w.Until(lease - 2*time.Second)
		n.Stall()
		require.Nil(w.T, q.Refused(lease, berth.ReasonTimedOut).Pause)
		n.Flow()
	})
}

// pauseAll pauses all names, and returns how many that were.
func (n *proc) pauseAll(lasts time.Duration) int {
	n.w.T.Helper()
	all, err := n.Operator().PauseAll(context.Background(), lasts, "moving house")
	require.NoError(n.w.T, err)
	require.Zero(n.w.T, all.Unread)
	return all.Names
}

func TestAPauseOfAllNamesGrantsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, ops := w.node(), w.node()
		p := n.take(1, nil)
		waits := n.queue(1, nil)
		start := w.Now()
		require.Equal(t, 1, ops.pauseAll(10*time.Minute))
		require.Equal(t, start+7*time.Second, w.Now(), "all have heard, and what they had asked for is answered")

		require.NoError(t, p.Release(ctx))
		fresh := n.queueOn(ctx, n.on("new"), nil)
		other := w.node().queueOn(ctx, n.on("newer"), nil)
		refused := n.isPaused("newest")
		require.Equal(t, "moving house", refused.Pause.Reason)
		require.InDelta(t, 10*time.Minute-7*time.Second, refused.Pause.Left, float64(ms))
		require.NotContains(t, w.Keys(), "berth:sem:{newest}:state", "who tries makes no name")
		w.Until(start + 10*time.Minute - time.Second)
		testkit.RequirePending(t, waits, fresh, other)
		require.ErrorIs(t, testkit.Second(n.on("new").TryAcquire(ctx, nil)), berth.ErrBusy)
		w.Advance(2 * time.Second)
		for _, q := range []*wait{waits, fresh, other} {
			q.GrantedWithin(start+10*time.Minute, 100*ms)
		}
	})
}

func TestWhileAllNamesArePaused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{AllowEviction: true})
		w.got(n.on("held").Acquire(ctx, nil))
		w.node().pauseAll(time.Hour)
		require.NoError(t, testkit.Second(n.Check(ctx)))
		require.Zero(t, n.Count("semaphore_pause"), "a check goes past it")

		n.Reset()
		n.OnCommand(refuse("semaphore_pause", readonly))
		q := n.queue(1, nil)
		w.Advance(3 * time.Second)
		require.True(t, q.Pending())
		require.Zero(t, n.Scripts()["thin_acquire"]+n.Scripts()["semaphore_acquire"], "nobody asks before the name is paused")
		n.OnCommand(nil)
		w.Advance(3 * time.Second)
		require.True(t, q.Pending(), "it stands in line, in a name that is paused")
		require.Equal(t, 1, w.stats().Waiting)

		w.Do("DEL", stateKey, lineKey) // a failover that loses the pause of a name loses no pause of all names
		w.Advance(2 * lease)
		require.True(t, q.Pending(), "it was restored to a paused name")
		require.Equal(t, 1, w.stats().Waiting)
		q.Cancel(nil)

		q = n.queueOn(ctx, n.on("apart"), nil) // an operator may set a name apart
		require.True(t, q.Pending())
		require.NoError(t, w.node().Operator().Unpause(ctx, keyspace.Sem, "apart"))
		synctest.Wait()
		require.False(t, q.Pending())
		for range 5 {
			w.Advance(6 * time.Second) // each claim is a first contact again
			require.ErrorIs(t, testkit.Second(n.on("apart").TryAcquire(ctx, nil)), berth.ErrBusy)
			require.NoError(t, q.Got.Release(ctx))
			q = n.queueOn(ctx, n.on("apart"), nil)
			require.False(t, q.Pending())
		}
	})
}

func TestTheEndOfAPauseOfAllNames(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, ops := w.node(), w.node()
		require.NoError(t, ops.Operator().Pause(ctx, keyspace.Sem, "mine", 2*time.Hour, "mine"))
		ops.pauseAll(time.Hour)
		all, mine := n.queueOn(ctx, n.on("all"), nil), n.queueOn(ctx, n.on("mine"), nil)
		testkit.RequirePending(t, all, mine)
		idle := n.queue(1, nil)
		idle.Cancel(nil) // nobody waits any more for that name, which was paused on contact
		<-idle.Done
		ended, err := ops.Operator().UnpauseAll(ctx)
		require.NoError(t, err)
		require.Equal(t, berth.PausedAll{Names: 2}, ended)
		require.False(t, all.Pending())
		require.True(t, mine.Pending(), "what an operator paused by itself")
		n.take(1, nil)
	})
}

// A name has its own pause beside that of all names: each lasts without the other, whichever was set first.
func TestTheOwnPauseOfANameLastsBesideThatOfAll(t *testing.T) {
	type row struct {
		own          time.Duration // all are paused for 2 min
		later, ended bool          // own is set while all are paused; that of all is ended then
	}
	each(t, map[string]row{
		"a shorter one": {own: time.Minute}, "a shorter one alone": {own: time.Minute, ended: true},
		"a longer one": {own: 3 * time.Minute}, "a longer one alone": {own: 3 * time.Minute, ended: true},
		"a later, shorter one": {own: time.Minute, later: true}, "a later, shorter one alone": {time.Minute, true, true},
		"a later, longer one": {own: 3 * time.Minute, later: true}, "a later, longer one alone": {3 * time.Minute, true, true},
	}, func(t *testing.T, w *world, c row) {
		n, ops := w.node(), w.node()
		held, q := n.take(1, nil), n.queue(1, nil)
		end := w.Now() + c.own
		if !c.later {
			ops.pause(c.own)
		}
		ops.pauseAll(2 * time.Minute)
		require.NoError(t, held.Release(context.Background()))
		if c.later {
			end = w.Now() + c.own
			ops.pause(c.own)
		}
		if !c.ended {
			q.GrantedWithin(max(end, 2*time.Minute), 100*ms)
			return
		}
		ended, err := ops.Operator().UnpauseAll(context.Background())
		require.NoError(t, err)
		require.Zero(t, ended, "it is paused yet")
		require.ErrorContains(t, testkit.Second(n.gpu(1).TryAcquire(context.Background(), nil)), "migration")
		q.GrantedWithin(end, 100*ms)
	})
}

func TestARepeatOfAPauseOfAllNamesSetsAnotherEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, ops := w.node(), w.node()
		ops.pauseAll(2 * time.Hour)
		q := n.queue(1, nil)
		start := w.Now()
		ops.Reset()
		require.Equal(t, 1, ops.pauseAll(5*time.Second))
		require.Equal(t, 1, ops.Count("semaphore_pause"), "one that is over when all have heard is not set anew")
		q.GrantedWithin(start+5*time.Second, 100*ms)
	})
}

// The second pass of a pause of all names comes when another call has ended that.
func TestAPauseOfAllNamesThatWasOvertakenPausesNoMore(t *testing.T) {
	for name, over := range map[string]func(ops *node.Operator) error{
		"unpaused": func(ops *node.Operator) error {
			return testkit.Second(ops.UnpauseAll(context.Background()))
		},
		"paused: again": func(ops *node.Operator) error {
			return testkit.Second(ops.PauseAll(context.Background(), 20*time.Second, "again"))
		},
	} {
		inWorldOf(t, name, func(t *testing.T, w *world) {
			n, ops, other := w.node(), w.node(), w.node()
			held := n.take(1, nil)
			q := n.queue(1, nil)
			first, second := make(chan error, 1), make(chan error, 1)
			go func() { first <- testkit.Second(ops.Operator().PauseAll(context.Background(), time.Hour, "first")) }()
			w.Advance(time.Second)
			require.NotZero(t, w.Field("pause"))
			go func() { second <- over(other.Operator()) }()
			w.Advance(6 * time.Second)
			var stale *berth.OvertakenError
			require.ErrorAs(t, <-first, &stale)
			require.Equal(t, name, stale.Changed)
			require.NoError(t, held.Release(context.Background()))
			ends := w.Now()
			if name != "unpaused" {
				ends = 21 * time.Second
			}
			q.GrantedWithin(ends, 100*ms)
			require.NoError(t, <-second)
		})
	}
}

func TestAPauseOfAllNamesSaysWhichItCouldNotAsk(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, ops := w.node(), w.node()
		for i := range 4 { // in fat form
			_, err := n.on(fmt.Sprintf("s%03d", i)).TryAcquire(context.Background(), &semaphore.AcquireOptions{Lease: time.Hour})
			require.NoError(t, err)
		}
		ops.OnCommand(refuse("semaphore_pause", "NOPERM no permissions"))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		all, err := ops.Operator().PauseAll(ctx, time.Hour, "")
		require.Equal(t, berth.PausedAll{Unread: 4}, all)
		require.ErrorContains(t, err, "NOPERM")
		require.Regexp(t, `these names could not be asked: "s00\d", "s00\d", "s00\d", "s00\d"$`, err.Error())
	})
}

// What the sweep behind it leaves to those who wait is unpaused all the same.
func TestANameThatCannotBeSweptIsNotUnread(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const many = 150 // more than a script grants at a time
		n, ops := w.node(), w.node()
		ops.pauseAll(time.Hour)
		for range many {
			n.queue(many, nil)
		}
		ops.OnCommand(refuse("semaphore_sweep", "NOPERM no permissions"))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		ended, err := ops.Operator().UnpauseAll(ctx)
		require.ErrorContains(t, err, "NOPERM")
		require.Equal(t, berth.PausedAll{Names: 1}, ended)
	})
}

func TestAPauseOfAllNamesEndsWithItsCaller(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		require.ErrorIs(t, testkit.Second(w.node().Operator().PauseAll(ctx, time.Hour, "")), context.DeadlineExceeded)
		require.True(t, w.node().queue(1, nil).Pending(), "who comes later hears all the same")
		for _, lasts := range []time.Duration{0, -1, 367 * 24 * time.Hour, 1} {
			_, err := w.node().Operator().PauseAll(context.Background(), lasts, "")
			require.ErrorIs(t, err, berth.ErrInvalidConfig)
		}
	})
}

// isPaused has a call that does not wait be refused for the pause.
func (n *proc) isPaused(name string) berth.AcquireError {
	n.w.T.Helper()
	var refused *berth.AcquireError
	_, err := n.on(name).TryAcquire(ctx, nil)
	require.ErrorIs(n.w.T, err, berth.ErrBusy, name)
	require.ErrorAs(n.w.T, err, &refused, name)
	require.Equal(n.w.T, berth.ReasonPaused, refused.Reason, name)
	return *refused
}

// The notice goes with the data of its server, and with it the pauses that the names had.
func TestAPauseOfAllNamesThatWasHeardOutlivesALoss(t *testing.T) {
	each(t, map[string]func(w *world) func(){
		"flush":      func(w *world) func() { return func() { w.Do("FLUSHALL") } },
		"older data": func(w *world) func() { return w.Snapshot() },
		"an older ended one": func(w *world) func() {
			w.Notice("pause:sem", 0, "")
			return w.Snapshot()
		},
	}, func(t *testing.T, w *world, lose func(w *world) func()) {
		n, ops := w.node(), w.node()
		restore := lose(w)
		w.Advance(time.Second)
		ops.pauseAll(2 * time.Minute)
		start := w.Now()
		waits := n.queueOn(context.Background(), n.on("met"), nil)
		n.isPaused("met")
		restore()
		for i := range 300 {
			n.isPaused("met")
			n.isPaused(fmt.Sprint("fresh", i))
			w.Advance(100 * ms)
		}
		require.True(t, waits.Pending())
		w.Until(start + 110*time.Second)
		n.isPaused("met")
		n.isPaused("last")
		waits.GrantedWithin(start+113*time.Second, 100*ms)
		require.NoError(t, testkit.Second(n.on("fresh").TryAcquire(context.Background(), nil)))
	})
}

func TestAnOperatorEndsAPauseOfAllNamesWhoseNoticeWasLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, ops := w.node(), w.node()
		ops.pauseAll(time.Hour)
		n.isPaused("a")
		w.Do("FLUSHALL")
		require.NoError(t, ops.Operator().Unpause(ctx, keyspace.Sem, "apart"))
		p := w.got(n.on("apart").TryAcquire(ctx, nil))
		require.NoError(t, p.Release(ctx))
		n.isPaused("a")
		require.NoError(t, testkit.Second(ops.Operator().UnpauseAll(ctx)))
		require.NoError(t, testkit.Second(n.on("a").TryAcquire(ctx, nil)))
	})
}

// A process comes back that was cut off while all names were paused, with calls that it makes then, and with one
// that it has made all the while.
func TestWhoWasCutOffDuringAPauseOfAllNamesGetsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, ops := w.node(), w.node()
		n.connect()
		n.Cut()
		w.Advance(time.Second)
		q := n.queueOn(context.Background(), n.on("asked for"), nil)
		ops.pauseAll(time.Hour)
		n.Mend()
		for i := range 30 {
			n.isPaused(fmt.Sprint("fresh", i))
		}
		w.Advance(2 * lease)
		require.True(t, q.Pending())
		require.False(t, w.held("asked for"))
		require.False(t, w.held("fresh0"))
		require.NoError(t, testkit.Second(ops.Operator().UnpauseAll(context.Background())))
		w.Advance(lease)
		require.False(t, q.Pending())
	})
}

// held says whether somebody holds a name.
func (w *world) held(name string) bool {
	w.T.Helper()
	look := *w.World
	look.Name = name
	n, err := look.Look()
	require.NoError(w.T, err)
	return n.Held > 0
}

// The call reaches the server when the pause has begun, and is granted by a name of which that has not heard.
func TestAGrantFromBeforeTheNodeHeardOfAPauseDoesNotStand(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, ops := w.node(node.Config{Lease: time.Minute, CallTimeout: 30 * time.Second}), w.node()
		n.connect()
		w.Advance(time.Second)
		n.Stall()
		q := n.queueOn(context.Background(), n.on("slow"), nil)
		ops.pauseAll(time.Hour)
		n.Flow()
		w.Advance(lease)
		require.True(t, q.Pending(), "%v", q.Err)
		require.False(t, w.held("slow"))
		q.Cancel(nil)
	})
}

func TestWhoWasCutOffDuringADrainGetsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(node.Config{Label: "worker/7"}), w.node()
		n.connect()
		held := other.take(1, nil)
		waits := n.queue(1, nil)
		w.Advance(time.Second)
		n.Cut()
		require.NoError(t, held.Release(ctx)) // it is granted now, and cannot hear of that
		w.drains("worker*", "drain")
		asks := n.queueOn(ctx, n.on("asked for"), nil)
		w.Advance(7 * time.Second)
		n.Mend()
		require.ErrorIs(t, testkit.Second(n.on("fresh").TryAcquire(ctx, nil)), berth.ErrDraining)
		w.Advance(lease)
		require.ErrorIs(t, waits.Err, berth.ErrDraining)
		require.ErrorIs(t, asks.Err, berth.ErrDraining)
		synctest.Wait()
		require.Zero(t, w.stats().Held)
		require.False(t, w.held("asked for"))
	})
}

// Whatever frees a place of a paused name, nobody gets it before the end; and then without a call. The model of
// internal/model has all that frees one.
func TestAPausedNameGrantsNothing(t *testing.T) {
	each(t, map[string]func(w *world, n *proc, held *semaphore.Permit){
		"a release": func(w *world, _ *proc, held *semaphore.Permit) { release(w.T, held) },
		"an expiry": func(w *world, n *proc, held *semaphore.Permit) {
			detach(w.T, held)
			w.Advance(lease)
			dropped, err := n.Operator().Sweep(context.Background(), keyspace.Sem, gpu)
			require.NoError(w.T, err)
			require.Equal(w.T, 1, dropped)
		},
		"whoever is first leaves": func(w *world, n *proc, held *semaphore.Permit) {
			heavy := n.queue(2, &semaphore.AcquireOptions{Weight: 2, Priority: 5})
			release(w.T, held)
			heavy.Cancel(nil)
			<-heavy.Done
		},
	}, func(_ *testing.T, w *world, frees func(w *world, n *proc, held *semaphore.Permit)) {
		n, ops := w.node(), w.node()
		held, other := n.take(2, nil), n.take(2, nil)
		q := n.queue(2, nil)
		ops.pause(paused)
		frees(w, ops, held)
		w.Until(paused - ms)
		testkit.RequirePending(w.T, q)
		require.NoError(w.T, other.Err(), "it renews")
		q.GrantedBy(paused)
	})
}
