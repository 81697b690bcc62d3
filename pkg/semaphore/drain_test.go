package semaphore_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// heard is how long a process takes to hear of a notice, at the most.
const heard = 5 * time.Second

// drains has the processes of a label drain, or not any more.
func (w *world) drains(label, word string) {
	w.T.Helper()
	w.Notice("l:"+label, 0, word)
}

func TestAProcessThatDrainsGetsNothingNew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(node.Config{Label: "worker/7"}), w.node(node.Config{Label: "web/1"})
		p, detached := n.take(2, nil), n.take(2, &semaphore.AcquireOptions{Lease: time.Hour, NoRenew: true})
		token := detach(t, detached)
		waits, behind := n.queue(2, nil), other.queue(2, nil)
		w.Advance(time.Second)
		w.drains("worker*", "drain")
		w.Advance(heard)
		require.True(t, n.Draining())
		require.True(t, wanted(p), "from the start: the process has heard, and no walk has asked")
		require.ErrorIs(t, waits.Err, berth.ErrDraining)
		n.Reset()
		for call, err := range map[string]error{
			"Acquire": testkit.Second(n.gpu(9).Acquire(ctx, nil)), "TryAcquire": testkit.Second(n.gpu(9).TryAcquire(ctx, nil)),
			"Do":     n.gpu(9).Do(ctx, nil, func(context.Context) error { return nil }),
			"Resume": testkit.Second(n.Resume(ctx, token)),
		} {
			require.ErrorIs(t, err, berth.ErrDraining, call)
			require.NotErrorIs(t, err, berth.ErrBusy, call)
		}
		require.Empty(t, n.Scripts())
		require.Equal(t, `drain label "worker*"`, n.Told(observe.Draining)[0].Detail)
		require.Equal(t, 1, w.stats().Waiting, "its wait has left the line")
		require.NoError(t, p.Err(), "what it holds goes on")
		release(t, p)
		behind.Granted(w.Now())

		w.drains("worker*", "stop")
		w.Advance(heard)
		q := w.got(n.Resume(ctx, token))
		release(t, q)
		require.Equal(t, `stop label "worker*"`, n.Told(observe.Draining)[1].Detail)
	})
}

// The walk of a drain ends waits by force. A process that has not heard of the drain by then asks.
func TestAWaitThatWasEndedForADrainSaysSo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{Label: "w"})
		w.node().take(1, nil)
		q := n.queue(1, nil)
		w.Advance(time.Second)
		w.drains("w", "drain")
		ended, err := w.node().Operator().Release(context.Background(), berth.Target{Node: n.ID()})
		require.NoError(t, err)
		require.Equal(t, 1, ended)
		synctest.Wait()
		q.Refused(w.Now(), berth.ReasonDraining)
	})
}

const noticeKey = "berth:notice:{all}:state"

// wrote has a field of the notice say that somebody drains, without the script.
func (w *world) wrote(field string) {
	w.Do("HSET", noticeKey, field, millis(time.Now().UnixMilli()+1)+" call 0 drain")
}

// Of a notice that somebody has filled a node reads what is about itself, and no more than that again.
func TestOfANoticeWithTooManyFieldsAPatternIsNotHeard(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.take(9, nil)
		w.wrote("l:nobody*")
		w.Advance(6 * time.Second)
		n.Fresh()
		w.Advance(5 * time.Second)
		require.LessOrEqual(t, n.Counts()["HSCAN"], 2, "one trip a read")
		require.Equal(t, n.Counts()["HLEN"], n.Counts()["HSCAN"])
		for i := range 10_000 {
			w.Do("HSET", noticeKey, "x:"+strconv.Itoa(i), "forged")
		}
		w.wrote("l:*")
		w.Advance(6 * time.Second)
		n.Reset()
		w.Advance(time.Minute)
		require.False(t, n.Draining())
		require.NotZero(t, n.Counts()["HLEN"])
		require.Zero(t, n.Counts()["HSCAN"])
		require.Zero(t, n.Counts()["HGETALL"])
		failed := n.Told(observe.NoticeFailed)
		require.Len(t, failed, 1)
		require.ErrorContains(t, failed[0].Err, "10002 fields")
		report, err := n.Check(context.Background())
		require.NoError(t, err)
		require.Len(t, report.Warnings, 3, "the embedded server does not know INFO")
		require.Contains(t, report.Warnings[2], "berth: what operators say to all has 10002 fields")

		w.wrote("n:" + n.ID())
		w.Advance(6 * time.Second)
		require.True(t, n.Draining())
		w.Do("HDEL", noticeKey, "x:1", "x:2", "n:"+n.ID())
		w.Advance(6 * time.Second)
		require.NotZero(t, n.Counts()["HSCAN"], "it is read whole again")
	})
}

// A text that Berth cannot have written crosses the wire once a minute, on the connection of the heartbeats.
func TestOfANoticeWithAHugeTextThatIsNotReadAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.take(9, nil)
		huge := strings.Repeat("x", 100<<10)
		w.Do("HSET", noticeKey, "l:nobody*", huge)
		w.Advance(6 * time.Second)
		n.Reset()
		w.Advance(50 * time.Second)
		require.Zero(t, n.Counts()["HSCAN"])
		require.NotZero(t, n.Counts()["HMGET"])
		failed := n.Told(observe.NoticeFailed)
		require.Len(t, failed, 1)
		require.ErrorIs(t, failed[0].Err, state.ErrDamaged)

		node := "n:" + n.ID()
		w.Do("HSET", noticeKey, node, huge)
		w.Do("HDEL", noticeKey, "l:nobody*")
		asked := 0
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "HMGET" && slices.Contains(c.Args, node) {
				asked++
			}
			return link.Pass
		})
		w.Advance(50 * time.Second)
		n.OnCommand(nil)
		require.Equal(t, 1, asked)
		w.wrote(node)
		w.Advance(20 * time.Second)
		require.True(t, n.Draining(), "it is read again")
	})
}

// No acquire waits for a notice that cannot be read; the observer is told.
func TestANoticeThatCannotBeReadStopsNoAcquire(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Do("SET", noticeKey, "somebody else's")
		n := w.node()
		n.take(9, nil)
		n.take(9, nil)
		require.Len(t, n.Told(observe.NoticeFailed), 1)
	})
}

// workers are the processes that drain.
var workers = berth.DrainTarget{Label: "worker/*"}

// worker starts a process of theirs.
func (w *world) worker(label string) *proc {
	return w.node(node.Config{Label: "worker/" + label})
}

// drained is what Drain returns.
type drained struct {
	berth.Drained
	err error
	at  time.Duration
}

// drain drains the workers, in the background.
func (w *world) drain(ctx context.Context, within time.Duration) <-chan drained {
	w.Advance(time.Second) // they were there before
	op, done := w.node(), make(chan drained, 1)
	op.Delay(func() time.Duration { return ms }) // so that others act in between
	go func() {
		got, err := op.Operator().Drain(ctx, workers, &berth.DrainOptions{Reason: "moving", Force: within > 0, ForceAfter: within})
		done <- drained{got, err, w.Now()}
	}()
	w.Advance(100 * ms)
	return done
}

func TestADrainEndsWhenNothingIsLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.worker("a")
		p := a.take(1, nil)
		thin, err := a.on("thin").Acquire(context.Background(), nil)
		require.NoError(t, err)
		require.False(t, wanted(p))
		waits, start := a.queue(1, nil), w.Now()+time.Second
		done := w.drain(context.Background(), 0)
		require.True(t, wanted(p) && wanted(thin), "the push prompts the heartbeat, whose answer tells")
		require.ErrorIs(t, waits.Err, berth.ErrDraining)
		require.True(t, a.Draining(), "it was prompted")
		require.Less(t, w.Now(), start+heard/2)
		w.Advance(20 * time.Second)
		require.Empty(t, done, "something is held")
		require.NoError(t, p.Err(), "by nobody's force")
		release(t, p)
		release(t, thin)
		got := <-done
		require.NoError(t, got.err)
		require.Equal(t, berth.Drained{Asked: 2, Cancelled: 1}, got.Drained)
		require.LessOrEqual(t, got.at, start+22*time.Second)
	})
}

func TestADrainEndsTheRestByForce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.worker("a")
		p := n.take(2, nil)
		left := n.take(2, &semaphore.AcquireOptions{Lease: time.Hour, NoRenew: true})
		_, err := left.Detach(ctx)
		require.NoError(t, err)
		done := w.drain(ctx, 10*time.Second)
		start := w.Now()
		got := <-done
		require.NoError(t, got.err)
		require.InDelta(t, start+10*time.Second, got.at, float64(100*ms))
		require.Equal(t, berth.Drained{Asked: 1, Ended: 1, Detached: 1}, got.Drained)
		w.Advance(lease)
		require.ErrorIs(t, p.Err(), berth.ErrReleased)
		require.ErrorIs(t, p.Err(), berth.ErrDraining)
		require.ErrorContains(t, p.Err(), `released (while drained by label "worker/*": moving) after`)
		_, err = n.on("other").TryAcquire(ctx, nil)
		require.ErrorContains(t, err, `drained by label "worker/*": moving`)
		require.Equal(t, 1, w.stats().Held, "what is detached is no process's")
	})
}

func TestADrainEndsByItselfWithWhatIsLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.worker("a")
		p := n.take(2, nil)
		w.Advance(time.Second)
		left := 0
		got, err := w.node().Operator().Drain(ctx, workers, &berth.DrainOptions{For: 20 * time.Second, Each: func(d berth.Drained) { left = d.Left }})
		require.ErrorContains(t, err, "the drain has ended by itself after 20s, with 1 holds and waits left")
		require.ErrorIs(t, err, berth.ErrAbsent)
		require.Equal(t, []int{1, 1}, []int{got.Left, left})
		require.Equal(t, p.ID(), got.Some[0].Claim)
		w.Advance(time.Second)
		require.False(t, n.Draining())
		require.NoError(t, testkit.Second(n.on("other").TryAcquire(ctx, nil)))
	})
}

// A pass that is not answered has found nothing out: what the pass before has found may be there yet.
func TestADrainThatIsNotAnsweredTellsWhatWasLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, op := w.worker("a"), w.node()
		n.take(2, nil)
		w.Advance(time.Second)
		op.OnCommand(func(c link.Command) link.Fate {
			if !slices.Contains([]string{"HMGET", "notice_set"}, c.Name) && w.Now() > 15*time.Second {
				return link.Refuse("LOADING Redis is loading the dataset in memory")
			}
			return link.Pass
		})
		var left []int
		got, err := op.Operator().Drain(ctx, workers, &berth.DrainOptions{For: 40 * time.Second, Each: func(d berth.Drained) { left = append(left, d.Left) }})
		require.ErrorContains(t, err, "with 1 holds and waits left")
		require.Equal(t, 1, got.Left)
		require.Greater(t, len(left), 15, "passes go on")
		require.NotContains(t, left, 0)
	})
}

// A server that answers what is read alone, as one that has become a replica does.
func TestADrainThatMayOnlyReadTellsAllThatIsLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, op := w.worker("a"), w.node()
		for range 5 {
			n.take(9, nil)
		}
		w.Advance(time.Second)
		op.OnCommand(func(c link.Command) link.Fate {
			if strings.Contains(c.Name, "_want") {
				return link.Refuse("READONLY You can't write against a read only replica.")
			}
			return link.Pass
		})
		got, err := op.Operator().Drain(ctx, workers, &berth.DrainOptions{For: 3 * time.Minute})
		require.ErrorContains(t, err, "with 5 holds and waits left")
		require.ErrorContains(t, err, "READONLY", "so it is known why")
		require.Len(t, got.Some, 5)
	})
}

// Nothing is known of what is left where the end by force is not answered.
func TestADrainWhoseEndIsNotAnsweredTellsWhatWasLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, op := w.worker("a"), w.node()
		n.take(2, nil)
		w.Advance(time.Second)
		op.OnCommand(func(c link.Command) link.Fate {
			if !slices.Contains([]string{"HMGET", "notice_set"}, c.Name) && w.Now() > 10*time.Second {
				return link.Refuse("LOADING Redis is loading the dataset in memory")
			}
			return link.Pass
		})
		got, err := op.Operator().Drain(ctx, workers, &berth.DrainOptions{Force: true, ForceAfter: 15 * time.Second})
		require.ErrorContains(t, err, "LOADING")
		require.Equal(t, 1, got.Left)
		require.Len(t, got.Some, 1)
	})
}

// A process that cannot read the notice takes again what was ended.
func TestADrainTellsWhatIsLeftAfterItsEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(context.Background())
		n := w.worker("deaf")
		n.OnCommand(refuse("HMGET", "NOPERM this user has no permissions to run the 'hmget' command"))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				if p, err := n.gpu(1).Acquire(ctx, nil); err == nil {
					_ = p.Wanted() // it has subscribed
					select {
					case <-p.Done():
					case <-ctx.Done():
					}
				}
			}
		}()
		got := <-w.drain(context.Background(), 3*time.Second)
		require.Error(t, got.err)
		require.Positive(t, got.Left)
		require.Positive(t, got.Ended)
		cancel()
		<-ended
	})
}

// A wait that is granted while the walk reads the line is asked for, not ended.
func TestADrainEndsNoHoldThatItTookForAWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.worker("a")
		held := w.node().take(1, nil)
		q := n.queue(1, nil)
		id := w.Waiters()[0].ID
		release(t, held)
		p := q.Granted(0)
		r := w.Call("semaphore_force_release", "60000", "berth:wake:", gpu, n.ID(), id, "60000", "1")
		require.Equal(t, []string{"not_held", ""}, []string{r.Status(), r.Str(1)})
		require.NoError(t, p.Renew(context.Background()))
	})
}

func TestADrainEndsWithItsCaller(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.worker("a")
		p := n.take(1, nil)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		got := <-w.drain(ctx, 0)
		require.ErrorIs(t, got.err, context.DeadlineExceeded)
		require.Equal(t, 1, got.Left)
		require.True(t, n.Draining(), "who has heard stays drained")
		require.NoError(t, p.Err())

		op := w.node()
		op.OnCommand(refuse("SCAN", "NOPERM this user has no permissions to run the 'scan' command"))
		ctx, cancel = context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		err := testkit.Second(op.Operator().Drain(ctx, workers, nil))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "NOPERM", "why it did not end")
	})
}

func TestADrainNeedsATarget(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ops, ctx := w.node().Operator(), context.Background()
		for _, target := range []berth.DrainTarget{{}, {Node: "a", Label: "b"}} {
			require.ErrorIs(t, testkit.Second(ops.Drain(ctx, target, nil)), berth.ErrInvalidConfig)
			require.ErrorIs(t, ops.StopDrain(ctx, target), berth.ErrInvalidConfig)
		}
		for field, opts := range map[string]berth.DrainOptions{
			"Force":      {ForceAfter: time.Second},
			"ForceAfter": {Force: true},
			"For":        {For: -time.Second},
			"Reason":     {Reason: strings.Repeat("x", 513)},
		} {
			require.ErrorContains(t, testkit.Second(ops.Drain(ctx, workers, &opts)), "berth: invalid "+field)
		}
		for field, opts := range map[string]berth.DrainOptions{
			"For":        {For: 8785 * time.Hour},
			"ForceAfter": {For: time.Minute, Force: true, ForceAfter: time.Minute},
		} {
			require.ErrorContains(t, testkit.Second(ops.Drain(ctx, workers, &opts)), "berth: invalid "+field)
		}
		require.Empty(t, w.Keys())
	})
}

// The names are read together: a drain among many takes little longer than one among few.
func TestADrainAmongManyNamesReadsThemTogether(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := w.node(node.Config{Label: "web"})
		for i := range 500 {
			require.NoError(t, testkit.Second(other.on(fmt.Sprintf("busy-%d", i)).Acquire(context.Background(), nil)))
		}
		w.worker("idle").connect()
		w.Advance(time.Second)
		op, start := w.node(), w.Now()
		op.Delay(func() time.Duration { return 20 * ms })
		got, err := op.Operator().Drain(context.Background(), workers, nil)
		require.NoError(t, err)
		require.Zero(t, got)
		require.LessOrEqual(t, w.Now(), start+heard+6*time.Second)
	})
}

func TestADrainReadsNoIdleNameByItself(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, n, op := context.Background(), w.worker("a"), w.node()
		const idle = 300
		for i := range idle {
			p := w.got(n.on(fmt.Sprint("idle ", i)).Acquire(ctx, nil))
			require.NoError(t, p.Release(ctx))
		}
		w.Advance(time.Second)
		require.NoError(t, testkit.Second(op.Operator().Drain(ctx, workers, nil)))
		sum := 0
		for _, count := range op.Counts() {
			sum += count
		}
		require.Less(t, sum, idle)
	})
}

// What a wait is granted before the walk comes to cancel it is ended, too.
func TestADrainEndsByForceWhatWasGrantedBeforeItsCancelling(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other, op := w.worker("a"), w.node(), w.node()
		held := other.take(1, nil)
		q := n.queue(1, nil)
		w.Advance(time.Second)
		op.Delay(func() time.Duration { return ms }) // the time is over before the first pass
		var once sync.Once
		op.OnCommand(func(c link.Command) link.Fate {
			if asks(c, "force_release") {
				once.Do(func() { require.NoError(t, held.Release(ctx)) })
			}
			return link.Pass
		})
		got, err := op.Operator().Drain(ctx, workers, &berth.DrainOptions{Force: true, ForceAfter: 1})
		require.NoError(t, err)
		require.Equal(t, berth.Drained{Asked: 1, Ended: 1}, got)
		require.False(t, q.Pending())
		require.Zero(t, w.stats().Held)
	})
}

func TestADrainThatAnotherCallHasChangedEndsNothing(t *testing.T) {
	for changed, change := range map[string]func(w *world) error{
		"stop":      func(w *world) error { return w.node().Operator().StopDrain(context.Background(), workers) },
		"forgotten": func(w *world) error { w.Do("DEL", noticeKey); return nil },
		"drain": func(w *world) error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			require.ErrorIs(w.T, testkit.Second(w.node().Operator().Drain(ctx, workers, nil)), context.DeadlineExceeded)
			return nil
		},
	} {
		inWorldOf(t, changed, func(t *testing.T, w *world) {
			p := w.worker("a").take(2, nil)
			done := w.drain(context.Background(), 30*time.Second)
			w.Advance(2 * time.Second)
			at := w.Now()
			require.NoError(t, change(w))
			got := <-done
			var stale *berth.OvertakenError
			require.ErrorAs(t, got.err, &stale)
			require.Equal(t, berth.OvertakenError{Changed: changed}, *stale)
			require.Equal(t, "berth: changed by another call meanwhile: "+changed, stale.Error())
			require.Equal(t, berth.Drained{Asked: 1, Left: 1, Some: got.Some}, got.Drained)
			require.LessOrEqual(t, got.at, at+2*time.Second+100*ms)
			w.Advance(time.Minute)
			require.NoError(t, p.Err())
		})
	}
}

// The drain is stopped after its last pass that asks.
func TestADrainLooksWhetherItGoesOnBeforeItEndsTheRest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.worker("a").take(2, nil)
		done := w.drain(context.Background(), 2500*ms)
		w.Advance(2200 * ms)
		require.NoError(t, w.node().Operator().StopDrain(context.Background(), workers))
		require.ErrorIs(t, (<-done).err, berth.ErrOvertaken)
		w.Advance(lease)
		require.NoError(t, p.Err())
	})
}

func TestADrainTellsWhichNamesItCannotRead(t *testing.T) {
	for text, problem := range map[string]string{"not Berth's": "damaged", "f4 new": "format 4"} {
		inWorldOf(t, text, func(t *testing.T, w *world) {
			w.Do("SET", "berth:sem:{odd}:state", text)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			start := w.Now()
			got := <-w.drain(ctx, 0)
			require.ErrorContains(t, got.err, problem)
			require.NotErrorIs(t, got.err, context.DeadlineExceeded)
			require.Zero(t, got.Drained)
			require.GreaterOrEqual(t, got.at, start+7*time.Second, "all have heard")
			require.LessOrEqual(t, got.at, start+10*time.Second)

			n := w.worker("b")
			p := n.take(2, nil)
			require.NoError(t, w.node().Operator().StopDrain(context.Background(), workers))
			got = <-w.drain(ctx, 3*time.Second)
			require.ErrorContains(t, got.err, problem)
			require.Equal(t, berth.Drained{Asked: 1, Ended: 1}, got.Drained, "it has looked once more")
			w.Advance(lease)
			require.ErrorIs(t, p.Err(), berth.ErrReleased)
		})
	}
}

// A pass over so many names takes far longer than within.
func TestADrainEndsTheRestByForceInTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, n, op := context.Background(), w.worker("a"), w.node()
		const names, within = 50, 10 * time.Second
		for i := range names {
			require.NoError(t, testkit.Second(n.on(fmt.Sprint("held ", i)).Acquire(ctx, nil)))
		}
		w.Advance(time.Second)
		var forced atomic.Int64
		op.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "semaphore_force_release" {
				forced.CompareAndSwap(0, int64(w.Now()))
			}
			return link.Slow(200 * ms)
		})
		start := w.Now()
		got, err := op.Operator().Drain(ctx, workers, &berth.DrainOptions{Force: within > 0, ForceAfter: within})
		require.NoError(t, err)
		require.Equal(t, names, got.Ended)
		require.Less(t, got.Asked, names, "the pass was cut short")
		require.LessOrEqual(t, time.Duration(forced.Load()), start+within+5*time.Second)
	})
}
