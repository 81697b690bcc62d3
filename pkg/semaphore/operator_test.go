package semaphore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Each call that goes unanswered takes as long as node.Config.Retry allows: the names of a server that answers none of them
// must not be asked for one by one.
func TestAnOperatorDoesNotWaitForEveryNameOfAServerThatDoesNotAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, op := w.node(), w.node(node.Config{Retry: berth.Retry{Within: 2 * time.Second}})
		for i := range 20 {
			_, err := n.on(fmt.Sprint("n", i)).Acquire(berth.WithOwner(ctx, "me"), &semaphore.AcquireOptions{Lease: berth.Forever})
			require.NoError(t, err)
		}
		release := func(target berth.Target) func() (int, error) {
			return func() (int, error) { return op.Operator().Release(ctx, target) }
		}
		for command, call := range map[string]func() (int, error){
			"MGET":                    release(berth.Target{Kind: keyspace.Sem, Owner: "me"}),
			"semaphore_force_release": release(berth.Target{Kind: keyspace.Sem, All: true}),
			"semaphore_sweep":         func() (int, error) { return op.Operator().Sweep(ctx, keyspace.Sem) },
		} {
			op.OnCommand(func(c link.Command) link.Fate {
				if c.Name == command {
					return link.LoseRequest
				}
				return link.Pass
			})
			began := w.Now()
			ended, err := call()
			require.ErrorIs(t, err, berth.ErrUnavailable, command)
			require.Zero(t, ended)
			require.LessOrEqual(t, w.Now()-began, 3*2*time.Second, command)
		}
	})
}

// A claim that is granted between the listings of who waits and of who holds is one claim.
func TestAClaimThatIsGrantedMeanwhileIsEndedOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, op := w.node(), w.node()
		p := n.take(1, nil)
		waits := n.queueOn(berth.WithOwner(context.Background(), "me"), n.gpu(1), nil)
		reads := 0
		op.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "MGET" {
				reads++
			}
			if c.Name == "MGET" && reads == 2 { // first it read who waits
				_ = p.Release(context.Background())
			}
			return link.Pass
		})
		ended, err := op.Operator().Release(context.Background(), berth.Target{Owner: "me"})
		require.NoError(t, err)
		require.Equal(t, 1, ended)
		require.Equal(t, 1, op.Count("semaphore_force_release"))
		<-waits.Done
		require.NoError(t, waits.Err)
		<-waits.Got.Done()
		require.ErrorIs(t, waits.Got.Err(), berth.ErrReleased)
	})
}

// copied has a node make a call of a verb, and returns what gives the server a copy of that.
func (w *world) copied(n *proc, verb string, call func()) (again func() scriptkit.Reply) {
	var args []string
	n.OnCommand(func(c link.Command) link.Fate {
		if c.Name == "semaphore_"+verb {
			args = c.Args[2+2:] // behind the text, and the Redis keys with their number
		}
		return link.Pass
	})
	call()
	n.OnCommand(nil)
	return func() scriptkit.Reply { return w.Call("semaphore_"+verb, args...) }
}

// resized has a node set a capacity, and returns what gives the server a copy of that.
func (w *world) resized(n *proc, capacity int) (copied func() scriptkit.Reply) {
	return w.copied(n, "resize", func() { require.NoError(w.T, n.resize(capacity)) })
}

// refused gives the server a copy that comes late, which must write nothing.
func (w *world) refused(copied func() scriptkit.Reply, changed string) {
	w.T.Helper()
	before, expiry := w.Dump(), w.Expiry()
	r := copied()
	require.Equal(w.T, []string{"stale", "", changed}, []string{r.Status(), r.Str(2), r.Str(3)})
	require.Equal(w.T, before, w.Dump())
	require.Equal(w.T, expiry, w.Expiry())
}

// The copy of a Resize comes when a newer one has been answered, be it in the same millisecond.
func TestALateCopyOfAResizeIsRefused(t *testing.T) {
	for name, start := range map[string]func(n *proc){
		"of a name that is not there": func(*proc) {},
		"of a thin name that is idle": func(n *proc) {
			require.NoError(n.w.T, n.take(1, nil).Release(context.Background()))
		},
		"of a thin name that is held":   func(n *proc) { n.take(1, nil) },
		"of a fat name that is held":    func(n *proc) { n.take(3, nil) },
		"of a name that was set before": func(n *proc) { require.NoError(n.w.T, n.resize(7)) },
	} {
		for _, newer := range []int{1, 2, 5} {
			for _, pause := range []time.Duration{0, ms, 30 * time.Second} {
				inWorldOf(t, name, func(t *testing.T, w *world) {
					old, n := w.node(), w.node()
					start(old)
					copied := w.resized(old, 5)
					w.Advance(pause)
					require.NoError(t, n.resize(newer))
					changed := map[int]string{1: "capacity 1, before 5", 2: "capacity 2, before 5", 5: "capacity 5, before 5"}[newer]
					w.refused(copied, changed)
					w.Advance(time.Minute - ms)
					w.refused(copied, changed)
					require.Equal(t, newer, w.stats().Capacity)
				})
			}
		}
	}
}

// A capacity that is what it was is set, too: an older call must not undo that.
func TestAResizeOfAThinNameToWhatItIsIsKnown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		old, n := w.node(), w.node()
		p := old.take(1, nil)
		var late []string
		old.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "semaphore_resize" && late == nil {
				late = c.Args[2+2:]
				require.NoError(t, n.resize(1))
			}
			return link.Pass
		})
		require.ErrorIs(t, old.resize(5), berth.ErrOvertaken)
		w.refused(func() scriptkit.Reply { return w.Call("semaphore_resize", late...) }, "capacity 1, before 1")
		require.NoError(t, p.Err())
		require.Equal(t, 1, w.stats().Capacity)
	})
}

// It names the claim that it ends.
func TestAForcedReleaseThatIsRepeatedSparesTheNextInLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, op := w.node(), w.node()
		p := n.take(1, nil)
		first, second := n.queue(1, nil), n.queue(1, nil)
		op.connect()
		op.Once("semaphore_force_release", link.LoseReply)
		_, err := op.Operator().Release(ctx, berth.Target{Kind: keyspace.Sem, Name: gpu})
		require.NoError(t, err)
		require.Equal(t, 2, op.Count("semaphore_force_release"))
		require.ErrorIs(t, p.Err(), berth.ErrReleased)
		next := first.Granted(0)
		testkit.RequirePending(w.T, second)
		release(t, next)
		release(t, second.Granted(w.Now()))
	})
}

func TestAResizeThatIsRepeatedIsAnsweredTheSameAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		require.NoError(t, n.resize(3))
		n.Once("semaphore_resize", link.LoseReply)
		require.NoError(t, n.resize(5))
		require.Equal(t, 3, n.Count("semaphore_resize"))
		told := n.Told(observe.Resized)
		require.Equal(t, []int{5, 3}, []int{told[len(told)-1].Capacity, told[len(told)-1].Count}, "before is what it was before the first")
		copied := w.resized(n, 6)
		before := w.Dump()
		r := copied()
		require.Equal(t, []any{"resized", int64(5), int64(0), int64(0), int64(0)}, []any{r.Status(), r.Int(1), r.Int(2), r.Int(3), r.Int(4)})
		require.Equal(t, before, w.Dump())
	})
}

func TestAResizeThatAnotherHasOvertakenSaysWhatWasChanged(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		require.NoError(t, n.resize(3))
		after := ""
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "semaphore_resize" && after == "" {
				require.NoError(t, other.resize(4))
				after = w.Dump()
			}
			return link.Pass
		})
		err := n.resize(5)
		require.ErrorIs(t, err, berth.ErrOvertaken)
		var stale *berth.OvertakenError
		require.ErrorAs(t, err, &stale)
		require.Equal(t, berth.OvertakenError{Name: gpu, Changed: "capacity 4, before 3"}, *stale)
		require.EqualError(t, err, `berth: "gpu": changed by another call meanwhile: capacity 4, before 3`)
		require.Equal(t, after, w.Dump(), "it has written nothing")
		require.Len(t, n.Told(observe.Resized), 1)
		require.NoError(t, n.resize(5), "who calls again has seen that")
	})
}

// A name of capacity 1 has its thin form back, and then a copy is not known any more.
func TestAResizedNameBecomesThinAMinuteAfter(t *testing.T) {
	for after, thin := range map[time.Duration]bool{30 * time.Second: false, time.Minute - ms: false, time.Minute: true} {
		inWorldOf(t, after.String(), func(t *testing.T, w *world) {
			n := w.node()
			copied := w.resized(n, 1)
			w.Advance(ms)
			require.NoError(t, n.resize(1))
			w.Advance(after)
			p := n.take(1, nil)
			w.Advance(time.Microsecond)
			require.NoError(t, p.Release(context.Background()))
			require.Equal(t, thin, len(w.Keys()) == 1)
			if !thin {
				w.refused(copied, "capacity 1, before 1")
				return
			}
			r := copied()
			require.Equal(t, "resized", r.Status())
		})
	}
}

// The state is there for as long as a copy may come, whatever Linger is.
func TestAResizedNameStaysWhileACopyMayComeLate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{Linger: time.Second, Lease: time.Second})
		copied := w.resized(n, 5)
		w.Advance(time.Second)
		require.NoError(t, n.resize(2))
		require.Equal(t, 62*time.Second, w.Expiry())
		w.Advance(10 * time.Second)
		require.NoError(t, n.take(2, nil).Release(context.Background()))
		require.Equal(t, 62*time.Second, w.Expiry())
		w.Advance(50*time.Second + 999*ms)
		w.refused(copied, "capacity 2, before 5")
		w.Advance(ms)
		require.Empty(t, w.Keys())
	})
}

// wanted says whether somebody wants a permit back, as its process knows.
func wanted(p berth.Handle) bool {
	select {
	case <-p.Wanted():
		return true
	default:
		return false
	}
}

// want asks for what a target has, and lets a push come.
func (n *proc) want(target berth.Target, count int) {
	n.w.T.Helper()
	asked, err := n.Operator().Want(context.Background(), target)
	require.NoError(n.w.T, err)
	require.Equal(n.w.T, count, asked)
	synctest.Wait()
}

func TestAPushPromptsTheHeartbeatThatSaysWanted(t *testing.T) {
	each(t, map[string]*semaphore.AcquireOptions{
		"of a lease that renews": nil,
		"of a fixed lease":       {NoRenew: true, Lease: time.Hour},
		"without end":            {Lease: berth.Forever},
	}, func(t *testing.T, w *world, opts *semaphore.AcquireOptions) {
		n, op := w.node(), w.node()
		p, other := n.take(2, opts), n.take(2, opts)
		require.False(t, wanted(p))
		w.Advance(500 * ms)
		op.want(berth.Target{Kind: keyspace.Sem, Name: gpu, Claim: p.ID()}, 1)
		require.True(t, wanted(p), "at once")
		require.False(t, wanted(other))
		require.NoError(t, p.Err(), "the hold goes on")
		w.Advance(2 * lease)
		op.want(berth.Target{Kind: keyspace.Sem, Name: gpu, Claim: p.ID()}, 1)
		require.NoError(t, p.Err())
		require.Len(t, n.Told(observe.Wanted), 1, "once")
		require.Equal(t, p.Fence(), n.Told(observe.Wanted)[0].Fence)
		for _, h := range w.Holders() {
			want := time.Duration(0)
			if h.ID == p.ID() {
				want = 2 * lease
			}
			require.Equal(t, want, h.Wanted, "since the first call")
		}
		require.NoError(t, p.Release(context.Background()))
		require.False(t, wanted(other))
	})
}

// Nobody hears of a detached hold that is wanted, until somebody takes it up.
func TestWhoResumesAHoldThatIsWantedKnowsAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, op := w.node(), w.node()
		p := n.take(1, nil)
		token := detach(t, p)
		op.want(berth.Target{Kind: keyspace.Sem, Name: gpu}, 1)
		w.Advance(time.Second)
		require.False(t, wanted(p))
		q := w.got(w.node().Resume(context.Background(), token))
		require.True(t, wanted(q))
		r := w.got(n.Resume(context.Background(), detach(t, q)))
		require.True(t, wanted(r), "also the next one")
		require.Len(t, n.Told(observe.Wanted), 1)
	})
}

func TestWantLeavesAloneWhatHoldsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, op := w.node(), w.node()
		ask := func(target berth.Target) error {
			return testkit.Second(op.Operator().Want(context.Background(), target))
		}
		claim := func(id string) berth.Target { return berth.Target{Kind: keyspace.Sem, Name: gpu, Claim: id} }
		p := n.take(1, &semaphore.AcquireOptions{NoRenew: true})
		q := n.queueOn(berth.WithOwner(context.Background(), "me"), n.gpu(1), nil)
		for why, target := range map[string]berth.Target{
			"its owner waits": {Kind: keyspace.Sem, Name: gpu, Owner: "me"},
			"it waits":        claim(w.Waiters()[0].ID),
			"of another node": {Kind: keyspace.Sem, Name: gpu, Claim: p.ID(), Node: op.ID()},
			"another name":    {Kind: keyspace.Sem, Name: "nobody's"},
		} {
			require.ErrorIs(t, ask(target), berth.ErrNotHeld, why)
		}
		require.NoError(t, ask(berth.Target{Owner: "nobody"}))
		require.ErrorIs(t, ask(berth.Target{}), berth.ErrInvalidConfig)
		require.Empty(t, op.Told(observe.WantedBack))
		<-q.Done
		require.NoError(t, q.Err)
		require.False(t, wanted(q.Got))
		require.ErrorIs(t, ask(claim(p.ID())), berth.ErrNotHeld, "it has ended")
		require.NoError(t, ask(berth.Target{All: true}))
		w.Advance(lease / 3)
		require.True(t, wanted(q.Got))
		w.acquireScript("dead", "dead.1", 2, semaphore.CapacityOverride)
		w.Advance(lease)
		require.ErrorIs(t, ask(claim("dead.1")), berth.ErrExpired, "nobody has swept it")
	})
}

// The first in line asks for as many of the longest holds as its weight takes, once each WantAfter.
func TestWhoWaitsForLongAsksForWhatItLacks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, m := w.node(), w.node()
		var held []*semaphore.Permit
		for _, weight := range []int{1, 2, 1, 1} {
			held = append(held, n.take(6, &semaphore.AcquireOptions{Weight: weight}))
			require.False(t, wanted(held[len(held)-1]))
			w.Advance(10 * ms)
		}
		asked := func() (all []bool) {
			synctest.Wait()
			for _, p := range held {
				all = append(all, wanted(p))
			}
			return all
		}
		q := m.queue(6, &semaphore.AcquireOptions{Weight: 4, WantAfter: 30 * time.Second})
		behind := m.queue(6, &semaphore.AcquireOptions{WantAfter: 100 * ms})
		w.Until(30 * time.Second)
		require.Equal(t, []bool{false, false, false, false}, asked(), "who is not the first asks for nothing")
		w.Until(31 * time.Second)
		require.Equal(t, []bool{true, true, false, false}, asked(), "1 is free, and these have 3")
		w.Until(2 * time.Minute)
		require.Equal(t, []bool{true, true, false, false}, asked(), "they are wanted already")
		require.NoError(t, held[0].Release(context.Background()))
		require.True(t, q.Pending())
		require.NoError(t, held[1].Release(context.Background()))
		synctest.Wait()
		require.NoError(t, q.Err)
		require.False(t, q.Pending())
		held = held[2:]
		w.Advance(lease / 3)
		require.Equal(t, []bool{true, false}, asked(), "now the other one is the first")
		require.NoError(t, held[0].Release(context.Background()))
		<-behind.Done
		w.Advance(time.Minute)
		require.Equal(t, []bool{true, false}, asked())
		require.Len(t, n.Told(observe.Wanted), 3)
	})
}

// What a call has dropped it does not ask for besides: a step is bounded.
func TestWhoAsksHasAHundredWithWhatItDrops(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, m := w.node(), w.node()
		for i := range 130 {
			lasts := time.Hour
			if i < 60 {
				lasts = time.Second
			}
			n.take(130, &semaphore.AcquireOptions{NoRenew: true, Lease: lasts})
		}
		m.queue(130, &semaphore.AcquireOptions{Weight: 130})
		claim := w.Waiters()[0].ID
		for _, of := range []*proc{n, m} {
			of.OnCommand(func(link.Command) link.Fate { return link.LoseRequest })
		}
		w.Advance(time.Second + ms)
		node, _, _ := strings.Cut(claim, ".")
		r := w.Call("semaphore_renew", "60000", "nobody:", gpu, node, claim, "want")
		require.Equal(t, "renewed", r.Status())
		w.Advance(ms)
		asked := 0
		for _, h := range w.Holders() {
			if h.Wanted > 0 {
				asked++
			}
		}
		require.Equal(t, 40, asked)
	})
}

// The records that a beat of the same node changes, as the one that confirms a long lease, keep the word.
func TestAWaiterAsksForAHoldOfItsOwnNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, &semaphore.AcquireOptions{Lease: time.Minute})
		n.queue(1, &semaphore.AcquireOptions{WantAfter: 20 * ms})
		w.Advance(lease)
		require.True(t, wanted(p))
	})
}

// What is given back during a pause helps nobody: the first in line asks when the pause is over.
func TestNobodyAsksWhileTheNameIsPaused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, nil)
		require.False(t, wanted(p))
		require.NoError(t, n.Operator().Pause(context.Background(), keyspace.Sem, gpu, time.Minute, ""))
		w.node().queue(1, &semaphore.AcquireOptions{WantAfter: time.Second})
		w.Until(59 * time.Second)
		require.False(t, wanted(p))
		w.Until(time.Minute + lease/2)
		require.True(t, wanted(p))
	})
}

// Holds that no process has come last: nobody hears of them.
func TestAWaiterAsksForDetachedHoldsLast(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, m := w.node(), w.node()
		hour := &semaphore.AcquireOptions{Lease: time.Hour}
		token := detach(t, n.take(2, hour))
		p := n.take(2, hour)
		m.queue(2, &semaphore.AcquireOptions{Weight: 1, WantAfter: time.Second})
		w.Advance(lease)
		require.True(t, wanted(p))
		q := w.got(n.Resume(context.Background(), token))
		require.False(t, wanted(q))
		token = detach(t, q)
		m.queue(2, &semaphore.AcquireOptions{Weight: 2, WantAfter: time.Second, Priority: 1})
		w.Advance(lease)
		q = w.got(n.Resume(context.Background(), token))
		require.True(t, wanted(q), "the heavy one needs both")
	})
}
