package heartbeat

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALaneHasAsManyBatchesInFlightAsTheRoundTripNeeds(t *testing.T) {
	const leases, size, length = 1000, 20, time.Second
	// 50 batches in a third of a second are one each 6.7 ms. The last ones of the
	// first turn are urgent.
	for trip, allowed := range map[time.Duration]int64{2 * ms: 1, 30 * ms: 5 + 1, 150 * ms: 23 + 1} {
		t.Run(fmt.Sprint(trip), func(t *testing.T) {
			var inFlight, tooMany atomic.Int64
			inWorld(t, func(ctx context.Context, key string, leases []*Lease) ([]Outcome, error) {
				if n := inFlight.Add(1); n > allowed {
					tooMany.Store(n)
				}
				defer inFlight.Add(-1)
				return after(trip, renewAll)(ctx, key, leases)
			}, func(w *world) {
				w.holds(leases, "k", length)
				w.until(3 * time.Second)
				w.mu.Lock()
				defer w.mu.Unlock()
				lost, failed := len(w.ended), len(w.fails) // and not all of them in the message
				require.Zero(t, lost)
				require.Zero(t, failed)
				require.Zero(t, tooMany.Load())
				require.LessOrEqual(t, len(w.sent), 3*3*leases/size)
			}, func(cfg *Config) { cfg.BatchSize = size })
		})
	}
}

func TestALeaseThatIsUrgentWaitsForNoBatchInFlight(t *testing.T) {
	hangs := func(ctx context.Context, key string, leases []*Lease) ([]Outcome, error) {
		for _, l := range leases {
			if l.Claim == "hangs" {
				return hang(ctx, key, leases)
			}
		}
		return renewAll(ctx, key, leases)
	}
	inWorld(t, hangs, func(w *world) {
		w.add("hangs", "k", w.hold(lease))
		w.until(1010 * ms)
		w.add("patient", "k", w.hold(lease))
		w.beatsBy(4499*ms, 3*time.Second)          // it waits for the answer
		w.beatsBy(4500*ms, 3*time.Second, 4500*ms) // which has not come in time

		w.until(5 * time.Second) // that one hangs, too
		w.add("urgent", "k", w.hold(lease), func(s *Spec) { s.Deadline = 6500 * ms })
		w.beatsBy(5500*ms, 3*time.Second, 4500*ms, 5500*ms)
		require.Equal(t, []string{"urgent"}, w.calls()[2].claims)
	})
}

func TestAnAnswerCountsUntilTheDeadline(t *testing.T) {
	const deadline = lease - 92*ms
	for at, counts := range map[time.Duration]bool{deadline - 1: true, deadline: false} {
		inWorld(t, script(after(at-3*time.Second, renewAll), hang), func(w *world) {
			l := w.add("a", "k", w.hold(lease))
			w.until(at)
			require.Equal(t, 4500*ms, w.failed("a")[0], "it counted as unanswered")
			if !counts {
				w.requireEnd("a", deadline, ErrDeadline)
				return
			}
			require.Equal(t, 3*time.Second+deadline, l.Deadline(), "from its own start")
			w.endsBy(time.Minute, "a", 3*time.Second+deadline, ErrDeadline)
		})
	}
}

func TestALateAnswerMakesTheRepeatNeedless(t *testing.T) {
	inWorld(t, script(after(1600*ms, renewAll), renewAll), func(w *world) {
		w.add("a", "k", w.hold(lease))
		w.beatsBy(10*time.Second, 3*time.Second, 6*time.Second, 9*time.Second)
		require.Equal(t, []time.Duration{4500 * ms}, w.failed("a"))
	})
}

func TestALateAnswerDoesNotHoldUpAKick(t *testing.T) {
	inWorld(t, script(after(1600*ms, renewAll), after(time.Second, renewAll), renewAll), func(w *world) {
		w.add("a", "k", w.hold(lease))
		w.until(1510 * ms)
		w.add("b", "k", w.hold(lease))
		w.until(4590 * ms) // a was missed, and b is in flight
		w.Kick("k")
		w.beatsBy(5600*ms, 3000*ms, 4500*ms, 5500*ms, 5500*ms)
		require.Equal(t, []string{"a"}, w.calls()[2].claims)
	}, func(cfg *Config) { cfg.BatchSize = 1 })
}

func TestOfTwoAnswersTheLaterBatchCounts(t *testing.T) {
	left := func(d time.Duration) server { return always(Outcome{Left: d}) }
	inWorld(t, script(after(3*time.Second, left(lease)), after(100*ms, left(5*time.Second)), hang), func(w *world) {
		l := w.add("a", "k", w.hold(lease))
		w.until(5 * time.Second)
		shorter := Deadline(4800*ms, 5*time.Second, lease)
		require.Equal(t, shorter, l.Deadline())
		w.until(6 * time.Second)
		require.Equal(t, shorter, l.Deadline(), "something was taken back since, or would have to have been")
		w.endsBy(time.Minute, "a", shorter, ErrDeadline)
	})
	inWorld(t, script(after(2*time.Second, left(lease)), after(1400*ms, left(lease)), hang), func(w *world) {
		l := w.add("a", "k", w.hold(lease))
		w.until(5 * time.Second)
		require.Equal(t, Deadline(3*time.Second, lease, lease), l.Deadline())
		w.until(6200 * ms)
		require.Equal(t, Deadline(4800*ms, lease, lease), l.Deadline(), "both, in their order")
	})
}

func TestALateAnswerKeepsNoExtensionThatALaterBeatMayTakeBack(t *testing.T) {
	inWorld(t, script(after(2*time.Second, always(Outcome{Left: time.Minute})), hang), func(w *world) {
		l := w.add("a", "k", w.hold(lease), func(s *Spec) { s.Deadline, s.Beyond = time.Minute, time.Hour })
		w.until(4600 * ms)
		w.Update(l, func(s *Spec) { s.Beyond = 0 }) // it was taken back
		w.until(6 * time.Second)
		require.Len(t, w.times(), 2)
		require.Equal(t, Deadline(4800*ms, lease, lease), l.Deadline())
	})
}

func TestALateFailureIsToldOnce(t *testing.T) {
	inWorld(t, script(after(2*time.Second, down), renewAll), func(w *world) {
		w.add("a", "k", w.hold(lease))
		w.until(time.Minute)
		require.Equal(t, []time.Duration{4500 * ms}, w.failed("a"))
		require.Equal(t, []time.Duration{3 * time.Second, 4800 * ms, 7800 * ms}, w.times()[:3])
	})
}
