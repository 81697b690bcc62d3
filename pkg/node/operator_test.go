package node_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// pauses pauses all names of some kinds.
func (p *proc) pauses(lasts time.Duration, of ...keyspace.Kind) {
	p.w.T.Helper()
	require.Zero(p.w.T, must(p.n.Operator().PauseAll(ctx, lasts, "move", of...))(p.w.T).Unread)
}

// requirePaused fails unless just these kinds grant nothing, because of a pause.
func (p *proc) requirePaused(paused ...string) {
	p.w.T.Helper()
	for _, kind := range kinds {
		h, err := p.try(kind, door)
		if err == nil {
			require.NotContains(p.w.T, paused, kind)
			require.NoError(p.w.T, h.Release(ctx))
			continue
		}
		var refusal *berth.AcquireError
		require.ErrorAs(p.w.T, err, &refusal, kind)
		require.Equal(p.w.T, berth.ReasonPaused, refusal.Reason, kind)
		require.Contains(p.w.T, paused, kind)
	}
}

// Each kind has a pause of its own in the one notice: with one for all, who pauses locks would stop the semaphores. A pause of all kinds
// is set by one script: three would leave some kinds paused and others not where the operator's process ends between them. What is said
// of one kind later leaves the others as they are.
func TestAPauseIsOfTheKindsThatItNames(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.process(node.Config{}, door), w.bare(node.Config{})
		a.requirePaused()
		b.pauses(time.Hour, keyspace.Lock)
		a.requirePaused("lock")
		b.pauses(time.Minute, keyspace.Sem, keyspace.Pool)
		a.requirePaused(kinds...)
		w.Advance(time.Minute)
		a.requirePaused("lock")
		must(b.n.Operator().UnpauseAll(ctx, keyspace.Lock))(t)
		a.requirePaused()

		b.Fresh()
		b.pauses(time.Hour)
		require.Equal(t, 1, b.Count("notice_set"))
		a.requirePaused(kinds...)
		b.pauses(time.Minute, keyspace.Sem)
		a.requirePaused(kinds...)
		w.Advance(time.Minute)
		a.requirePaused("lock", "allocation")
		must(b.n.Operator().UnpauseAll(ctx, keyspace.Pool))(t)
		a.requirePaused("lock")
		b.Fresh()
		must(b.n.Operator().UnpauseAll(ctx))(t)
		require.Equal(t, 1, b.Count("notice_set"))
		a.requirePaused()
	})
}

// The notice is kept for a day after the last of its pauses, whichever was set last: a shorter one of another kind, or the end of one,
// must not have a long one forgotten before its time.
func TestTheNoticeOutlastsItsFurthestPause(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const day = 24 * time.Hour
		b := w.bare(node.Config{})
		kept := func() time.Duration {
			return time.UnixMilli(w.Int("PEXPIRETIME", "berth:notice:{all}:state")).Sub(w.Began)
		}
		far := w.Now() + 100*day
		b.pauses(100*day, keyspace.Lock)
		require.Equal(t, far+day, kept())
		b.pauses(time.Minute, keyspace.Sem)
		require.Equal(t, far+day, kept())
		must(b.n.Operator().UnpauseAll(ctx, keyspace.Pool, keyspace.Sem))(t)
		require.Equal(t, far+day, kept())
		ended := w.Now()
		must(b.n.Operator().UnpauseAll(ctx, keyspace.Lock))(t)
		require.Equal(t, ended+day, kept(), "nothing is paused any more")
	})
}

type targetOf = func(p *proc) berth.DrainTarget

// targets are the ways to name a process that drains.
var targets = map[string]targetOf{
	"a node":              func(p *proc) berth.DrainTarget { return berth.DrainTarget{Node: p.n.ID()} },
	"a label":             func(*proc) berth.DrainTarget { return berth.DrainTarget{Label: "host/worker/1"} },
	"what begins a label": func(*proc) berth.DrainTarget { return berth.DrainTarget{Label: "host/*"} },
}

// A process drains as a whole, by one call: half a drained one would refuse here, and get there what feeds it. The call returns when
// nothing of any kind is left, and others have got what the process held.
func TestADrainIsOfAllThatAProcessHas(t *testing.T) {
	inEach(t, targets, func(t *testing.T, w *world, target targetOf) {
		a, c := w.process(node.Config{Label: "host/worker/1"}), w.process(node.Config{Label: "guest/worker/1"})
		ops := w.bare(node.Config{Label: "ops"})
		a.fill(door, "other", "free")
		kept := c.take("other", terms{})
		waits := a.queue("other", terms{})
		for kind, h := range a.take(door, terms{}) {
			work := map[string]time.Duration{"lock": 1, "permit": 10, "allocation": 15}
			go func() { // which ends its work when it is asked to, and that takes a while
				<-h.(interface{ Wanted() <-chan struct{} }).Wanted()
				<-time.After(work[kind] * time.Second)
				_ = h.Release(ctx)
			}()
		}
		next := c.queue(door, terms{})
		w.Advance(time.Second) // a process that begins in the same moment is a later one
		found := must(ops.n.Operator().Drain(ctx, target(a), nil))(t)
		require.Zero(t, found.Left, "%+v", found)
		require.Zero(t, found.Ended)
		require.GreaterOrEqual(t, w.Now(), 15*time.Second)
		require.Less(t, w.Now(), 20*time.Second)
		synctest.Wait() // the last pass may come in the moment of the last release
		for _, kind := range kinds {
			require.False(t, waits[kind].Pending(), kind)
			require.ErrorIs(t, waits[kind].Err, berth.ErrDraining, kind)
			require.False(t, next[kind].Pending(), kind)
			require.NoError(t, next[kind].Err, kind)
			require.NoError(t, kept[kind].Err(), kind)
			require.ErrorIs(t, testkit.Second(a.try(kind, "free")), berth.ErrDraining, kind)
		}
		require.True(t, a.n.Draining())
		require.False(t, c.n.Draining())
		c.requireFree("free")
		require.NoError(t, ops.n.Operator().StopDrain(ctx, target(a)))
		w.Advance(5 * time.Second)
		require.False(t, a.n.Draining())
		a.requireFree("free")
	})
}

// What a process makes after the drain is of the process that drains. A client of its own, as a process had one of each kind, would
// be one that starts later under the label.
func TestWhatIsMadeInADrainIsRefused(t *testing.T) {
	inEach(t, targets, func(t *testing.T, w *world, target targetOf) {
		a, ops := w.bare(node.Config{Label: "host/worker/1"}), w.process(node.Config{Label: "ops"}, door)
		a.locks = qlock.New(a.n, qlock.Config{})
		l := must(a.locks.Lock(ctx, "mine", nil))(t)
		go func() {
			<-l.Wanted()
			_ = l.Release(ctx)
		}()
		w.Advance(time.Second)
		require.Zero(t, must(ops.n.Operator().Drain(ctx, target(a), nil))(t).Left)
		a.faces() // more locks, and the first of all else
		for _, kind := range kinds {
			require.ErrorIs(t, testkit.Second(a.try(kind, door)), berth.ErrDraining, kind)
		}
		require.True(t, a.n.Draining())
		require.NoError(t, ops.n.Operator().StopDrain(ctx, target(a)))
		w.Advance(5 * time.Second)
		a.requireFree(door)
	})
}

// A node gives back what it holds, of all kinds, and goes on with the rest.
func TestReleaseAllIsOfAllKinds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.process(node.Config{}, door, "other"), w.process(node.Config{})
		held, kept := a.take(door, terms{}), b.take("other", terms{})
		waits, next := a.queue("other", terms{}), b.queue(door, terms{})
		must(must(a.sem("parked").Acquire(ctx, nil))(t).Detach(ctx))(t)
		require.Equal(t, len(kinds), must(a.n.ReleaseAll(ctx))(t))
		require.ErrorIs(t, testkit.Second(b.sem("parked").TryAcquire(ctx, nil)), berth.ErrBusy, "it is nobody's")
		for _, kind := range kinds {
			require.ErrorIs(t, held[kind].Err(), berth.ErrReleased, kind)
			next[kind].Granted(w.Now())
		}
		requirePending(t, waits)
		for _, kind := range kinds {
			require.NoError(t, kept[kind].Release(ctx))
			waits[kind].Granted(w.Now())
		}
	})
}

// lines are the claims that wait, by kind, in the order of the line.
func (w *world) lines() map[string][]string {
	w.T.Helper()
	lines := make(map[string][]string)
	for kind, key := range ofKeys {
		of := *w.World // looks at the name of that kind
		of.State = "berth:" + string(key) + ":{door}:state"
		for _, waiter := range of.Waiters() {
			lines[kind] = append(lines[kind], waiter.ID)
		}
	}
	return lines
}

// A server that has lost everything is told by each process what it waits for, of all kinds, and each claim stands where it stood.
func TestAfterAFlushTheClaimsOfAllKindsComeBackInTheirPlaces(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		procs := []*proc{w.process(node.Config{}), w.process(node.Config{}), w.process(node.Config{})}
		a := procs[0]
		a.fill(door)
		held := a.take(door, terms{})
		waits := make(map[string]*wait) // by claim
		seen := w.lines()
		for i := range 9 {
			for kind, q := range procs[i%3].queue(door, terms{}) {
				line := w.lines()[kind]
				require.Len(t, line, len(seen[kind])+1, kind)
				waits[line[len(line)-1]] = q
			}
			seen = w.lines()
			w.Advance(10 * ms)
		}
		w.Until(5 * time.Second)
		w.Do("FLUSHALL")
		w.Advance(10 * time.Second / 3)
		now := w.lines()
		for _, kind := range kinds {
			require.ErrorIs(t, held[kind].Err(), berth.ErrLost, kind)
			first := len(seen[kind]) - len(now[kind]) // who asked first was granted what was free then, as far as it was there
			require.LessOrEqual(t, first, 1, kind)
			place := make(map[string]int)
			for i, id := range seen[kind] {
				place[id] = i + 1
			}
			last := 0
			for _, id := range now[kind] {
				require.Greater(t, place[id], last, kind)
				last = place[id]
			}
		}
		require.Len(t, now["allocation"], 9, "the resources are lost too")
		a.fill(door)
		for _, kind := range kinds {
			order := now[kind]
			for _, id := range seen[kind] { // who holds has left the line
				if q := waits[id]; !q.Pending() && kind != "allocation" {
					require.NoError(t, q.Err)
					require.NoError(t, q.Got.Release(ctx), kind)
				}
			}
			for _, id := range order {
				h := waits[id].Granted(w.Now())
				require.Equal(t, id, h.ID(), kind)
				require.NoError(t, h.Release(ctx))
			}
		}
	})
}

// When a process ends, its pools are told first, which have work of their own under way; then all that is held is given back; and a
// value is closed when nobody relies on its resource any more, once.
func TestCloseEndsSourcesThenHoldsThenValues(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.process(node.Config{}), w.process(node.Config{})
		var told, ended time.Duration
		var closed []time.Duration
		var held map[string]berth.Hold
		asked := 0
		a.with(door, allocator.Config[string]{
			Source: func(ctx context.Context) ([]string, error) {
				if asked++; asked > 1 {
					<-ctx.Done()
					told = w.Now()
					<-time.After(time.Second)
					ended = w.Now()
					return nil, ctx.Err()
				}
				return []string{"r"}, nil
			},
			RefreshEvery: time.Second,
			Open:         func(_ context.Context, resource string) (string, error) { return resource, nil },
			Close: func(string) error {
				closed = append(closed, w.Now())
				for _, kind := range kinds {
					require.ErrorIs(t, held[kind].Err(), berth.ErrReleased, kind)
				}
				b.requireFree(door)
				return nil
			},
		})
		w.Advance(100 * ms)
		held = a.take(door, terms{})
		w.Advance(5 * time.Second)
		require.Equal(t, 2, asked)
		a.Delay(func() time.Duration { return 100 * ms })
		began := w.Now()
		require.NoError(t, a.n.Close(ctx))
		require.Equal(t, began, told, "before anything is given back, which takes a while")
		require.Equal(t, began+time.Second, ended)
		require.Equal(t, []time.Duration{ended}, closed)
		require.NoError(t, a.n.Close(ctx))
		require.Len(t, closed, 1)
	})
}
