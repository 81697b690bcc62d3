package semaphore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

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
		got, err := op.Operator().Drain(ctx, workers, within)
		done <- drained{got, err, w.Now()}
	}()
	w.Advance(100 * ms)
	return done
}

func TestADrainEndsWhenNothingIsLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, idle, other := w.worker("a"), w.worker("idle"), w.node(node.Config{Label: "web"})
		p := a.take(2, nil)
		thin, err := a.on("thin").Acquire(ctx, nil)
		require.NoError(t, err)
		asked := p.Wanted()
		kept := other.take(2, nil)
		waits, behind := a.queue(2, nil), other.queue(2, nil)
		start := w.Now() + time.Second
		done := w.drain(ctx, 0)
		for _, c := range []<-chan struct{}{asked, thin.Wanted()} {
			select {
			case <-c:
			default:
				t.Fatal("the push prompts the heartbeat, whose answer tells")
			}
		}
		require.ErrorIs(t, waits.Err, berth.ErrDraining)
		require.True(t, a.Draining(), "it was prompted")
		require.Less(t, w.Now(), start+heard/2)
		w.Advance(20 * time.Second)
		require.Empty(t, done, "something is held")
		require.NoError(t, p.Err(), "by nobody's force")
		require.NoError(t, p.Release(ctx))
		require.NoError(t, thin.Release(ctx))
		got := <-done
		require.NoError(t, got.err)
		require.Equal(t, berth.Drained{Asked: 2, Cancelled: 1}, got.Drained)
		require.LessOrEqual(t, got.at, start+22*time.Second)

		require.False(t, behind.Pending(), "others are served")
		require.NoError(t, kept.Err())
		for range 1000 {
			_, err := idle.gpu(2).TryAcquire(ctx, nil)
			require.ErrorIs(t, err, berth.ErrDraining)
		}
		for _, h := range w.Holders() {
			require.Equal(t, "web", h.Label)
		}
		require.NoError(t, w.node().Operator().StopDrain(ctx, workers))
		w.Advance(heard)
		require.False(t, idle.Draining())
	})
}

// A process that is idle hears as well: Drain waits for that.
func TestADrainWaitsUntilAllHaveHeard(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		busy := w.worker("busy")
		busy.connect()
		done := w.drain(context.Background(), 0)
		start := w.Now()
		got := <-done
		require.NoError(t, got.err)
		require.GreaterOrEqual(t, got.at, start+6900*ms)
		require.LessOrEqual(t, got.at, start+8*time.Second)
		require.True(t, busy.Draining())
	})
}

func TestADrainEndsTheRestByForce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
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
		require.Equal(t, 1, w.stats().Held, "what is detached is no process's")
	})
}

// A process that cannot read the notice takes again what was ended.
func TestADrainTellsWhatIsLeftAfterItsEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		n := w.worker("deaf")
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "HMGET" {
				return link.Refuse("NOPERM this user has no permissions to run the 'hmget' command")
			}
			return link.Pass
		})
		var runs atomic.Int64
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				p, err := n.gpu(1).Acquire(ctx, nil)
				if err != nil {
					return
				}
				runs.Add(1)
				_ = p.Wanted() // it has subscribed
				select {
				case <-p.Done():
				case <-ctx.Done():
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
		ctx := context.Background()
		n, other, op := w.worker("a"), w.node(), w.node()
		held := other.take(1, nil)
		q := n.queue(1, nil)
		id := w.Waiters()[0].ID
		require.NoError(t, held.Release(ctx))
		synctest.Wait()
		require.False(t, q.Pending())
		r := w.Call("semaphore_force_release", "60000", "berth:wake:", gpu, n.ID(), id, "60000", "1")
		require.Equal(t, []string{"not_held", ""}, []string{r.Status(), r.Str(1)})
		require.NoError(t, q.Got.Renew(ctx))
		require.NoError(t, op.Operator().StopDrain(ctx, workers))
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
	})
}

// A handle that its caller had not got when the process heard is wanted all the same.
func TestAHandleOfAProcessThatDrainsIsWantedFromTheStart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.worker("a")
		p := n.take(1, nil)
		w.Advance(time.Second)
		w.drains("worker/*", "drain")
		w.Advance(heard)
		select {
		case <-p.Wanted():
		default:
			t.Fatal("made after the process has heard, and no walk has asked")
		}
	})
}

func TestADrainNeedsATarget(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ops, ctx := w.node().Operator(), context.Background()
		for _, target := range []berth.DrainTarget{{}, {Node: "a", Label: "b"}} {
			_, err := ops.Drain(ctx, target, 0)
			require.ErrorIs(t, err, berth.ErrInvalidConfig)
			require.ErrorIs(t, ops.StopDrain(ctx, target), berth.ErrInvalidConfig)
		}
		_, err := ops.Drain(ctx, workers, -1)
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
		require.Empty(t, w.Keys())
	})
}

// The names are read together: a drain among many takes little longer than one among few.
func TestADrainAmongManyNamesReadsThemTogether(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := w.node(node.Config{Label: "web"})
		for i := range 500 {
			_, err := other.on(fmt.Sprintf("busy-%d", i)).Acquire(context.Background(), nil)
			require.NoError(t, err)
		}
		w.worker("idle").connect()
		w.Advance(time.Second)
		op, start := w.node(), w.Now()
		op.Delay(func() time.Duration { return 20 * ms })
		got, err := op.Operator().Drain(context.Background(), workers, 0)
		require.NoError(t, err)
		require.Zero(t, got)
		require.LessOrEqual(t, w.Now(), start+heard+6*time.Second)
	})
}

// What a wait is granted before the walk comes to cancel it is ended, too.
func TestADrainEndsByForceWhatWasGrantedBeforeItsCancelling(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
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
		got, err := op.Operator().Drain(ctx, workers, 1)
		require.NoError(t, err)
		require.Equal(t, berth.Drained{Asked: 1, Ended: 1}, got)
		require.False(t, q.Pending())
		require.Zero(t, w.stats().Held)
	})
}
