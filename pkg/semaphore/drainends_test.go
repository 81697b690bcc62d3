package semaphore_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
)

func TestADrainThatAnotherCallHasChangedEndsNothing(t *testing.T) {
	for changed, change := range map[string]func(w *world) error{
		"stop":      func(w *world) error { return w.node().Operator().StopDrain(context.Background(), workers) },
		"forgotten": func(w *world) error { w.Do("DEL", "berth:notice:{all}:state"); return nil },
		"drain": func(w *world) error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := w.node().Operator().Drain(ctx, workers, 0)
			require.ErrorIs(w.T, err, context.DeadlineExceeded)
			return nil
		},
	} {
		t.Run(changed, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				p := w.worker("a").take(2, nil)
				done := w.drain(context.Background(), 30*time.Second)
				w.Advance(2 * time.Second)
				at := w.Now()
				require.NoError(t, change(w))
				got := <-done
				var stale *berth.StaleError
				require.ErrorAs(t, got.err, &stale)
				require.Equal(t, berth.StaleError{Changed: changed}, *stale)
				require.Equal(t, "berth: changed by another call meanwhile: "+changed, stale.Error())
				require.Equal(t, berth.Drained{Asked: 1}, got.Drained)
				require.LessOrEqual(t, got.at, at+2*time.Second+100*ms)
				w.Advance(time.Minute)
				require.NoError(t, p.Err())
			})
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
		require.ErrorIs(t, (<-done).err, berth.ErrStale)
		w.Advance(lease)
		require.NoError(t, p.Err())
	})
}

func TestADrainTellsWhichNamesItCannotRead(t *testing.T) {
	for text, problem := range map[string]string{"not Berth's": "damaged", "f3 new": "format 3"} {
		t.Run(text, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
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
		})
	}
}

func TestADrainWhoseCallerEndsTellsWhyItDidNotEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		op := w.node()
		op.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "SCAN" {
				return link.Refuse("NOPERM this user has no permissions to run the 'scan' command")
			}
			return link.Pass
		})
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_, err := op.Operator().Drain(ctx, workers, 0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "NOPERM")
	})
}

func TestADrainReadsNoIdleNameByItself(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, n, op := context.Background(), w.worker("a"), w.node()
		const idle = 300
		for i := range idle {
			p, err := n.on(fmt.Sprint("idle ", i)).Acquire(ctx, nil)
			require.NoError(t, err)
			require.NoError(t, p.Release(ctx))
		}
		w.Advance(time.Second)
		_, err := op.Operator().Drain(ctx, workers, 0)
		require.NoError(t, err)
		sum := 0
		for _, count := range op.Counts() {
			sum += count
		}
		require.Less(t, sum, idle)
	})
}

// A pass over so many names takes far longer than within.
func TestADrainEndsTheRestByForceInTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, n, op := context.Background(), w.worker("a"), w.node()
		const names, within = 50, 10 * time.Second
		for i := range names {
			_, err := n.on(fmt.Sprint("held ", i)).Acquire(ctx, nil)
			require.NoError(t, err)
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
		got, err := op.Operator().Drain(ctx, workers, within)
		require.NoError(t, err)
		require.Equal(t, names, got.Ended)
		require.Less(t, got.Asked, names, "the pass was cut short")
		require.LessOrEqual(t, time.Duration(forced.Load()), start+within+5*time.Second)
	})
}
