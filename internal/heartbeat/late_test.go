package heartbeat

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// flights counts what a server has in hand.
type flights struct {
	t      *testing.T
	answer server

	mu   sync.Mutex
	in   map[*Lease]bool
	now  int
	most int
}

func (f *flights) beat(ctx context.Context, key string, leases []*Lease) ([]Outcome, error) {
	f.mu.Lock()
	f.now++
	f.most = max(f.most, f.now)
	for _, l := range leases {
		if f.in[l] {
			f.t.Error("a lease in two batches")
		}
		f.in[l] = true
	}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.now--
		for _, l := range leases {
			delete(f.in, l)
		}
	}()
	return f.answer(ctx, key, leases)
}

func TestALaneHasAsManyBatchesInFlightAsTheRoundTripNeeds(t *testing.T) {
	const leases, size, length = 1000, 20, time.Second
	for _, test := range []struct {
		trip time.Duration
		most int
	}{
		// 50 batches in a third of a second are one each 6.7 ms. The last ones of the
		// first turn are urgent.
		{2 * ms, 1}, {30 * ms, 5 + 1}, {150 * ms, 23 + 1},
	} {
		t.Run(fmt.Sprint(test.trip), func(t *testing.T) {
			f := &flights{t: t, in: map[*Lease]bool{}, answer: after(test.trip, renewAll)}
			inWorld(t, f.beat, func(w *world) {
				for i := range leases {
					w.add(fmt.Sprint(i), "k", w.hold(length))
				}
				w.until(3 * time.Second)
				w.mu.Lock()
				defer w.mu.Unlock()
				lost, failed := len(w.ended), len(w.fails) // and not all of them in the message
				require.Zero(t, lost)
				require.Zero(t, failed)
				require.LessOrEqual(t, f.most, test.most)
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
		w.until(4499 * ms)
		require.Equal(t, []time.Duration{3 * time.Second}, w.times(), "it waits for the answer")
		w.until(4500 * ms)
		require.Equal(t, []time.Duration{3 * time.Second, 4500 * ms}, w.times(), "which has not come in time")

		w.until(5 * time.Second) // that one hangs, too
		spec := w.hold(lease)
		spec.Deadline = 6500 * ms
		w.add("urgent", "k", spec)
		w.until(5500 * ms)
		require.Equal(t, []time.Duration{3 * time.Second, 4500 * ms, 5500 * ms}, w.times())
		require.Equal(t, []string{"urgent"}, w.calls()[2].claims)
	})
}

func TestAnAnswerCountsUntilTheDeadline(t *testing.T) {
	const deadline = lease - 92*ms
	for _, test := range []struct {
		name   string
		at     time.Duration
		counts bool
	}{
		{"after a sixth", 4600 * ms, true},
		{"right before the deadline", deadline - 1, true},
		{"at the deadline", deadline, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, script(after(test.at-3*time.Second, renewAll), hang), func(w *world) {
				l := w.add("a", "k", w.hold(lease))
				w.until(test.at)
				require.Equal(t, 4500*ms, w.failed("a")[0], "it counted as unanswered")
				if !test.counts {
					w.requireEnd("a", deadline, ErrDeadline)
					return
				}
				require.Equal(t, 3*time.Second+deadline, l.Deadline(), "from its own start")
				w.until(time.Minute)
				w.requireEnd("a", 3*time.Second+deadline, ErrDeadline)
			})
		})
	}
}

func TestALateAnswerMakesTheRepeatNeedless(t *testing.T) {
	inWorld(t, script(after(1600*ms, renewAll), renewAll), func(w *world) {
		w.add("a", "k", w.hold(lease))
		w.until(10 * time.Second)
		require.Equal(t, []time.Duration{3 * time.Second, 6 * time.Second, 9 * time.Second}, w.times())
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
		w.until(5600 * ms)
		require.Equal(t, []time.Duration{3000 * ms, 4500 * ms, 5500 * ms, 5500 * ms}, w.times())
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
		w.until(time.Minute)
		w.requireEnd("a", shorter, ErrDeadline)
	})
	inWorld(t, script(after(2*time.Second, left(lease)), after(1400*ms, left(lease)), hang), func(w *world) {
		l := w.add("a", "k", w.hold(lease))
		w.until(5 * time.Second)
		require.Equal(t, Deadline(3*time.Second, lease, lease), l.Deadline())
		w.until(6200 * ms)
		require.Equal(t, Deadline(4800*ms, lease, lease), l.Deadline(), "both, in their order")
	})
}

func TestALateAnswerMovesNoDeadlineThatWasSetSince(t *testing.T) {
	for name, set := range map[string]time.Duration{"shorter": 6 * time.Second, "longer": time.Minute} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, script(after(2*time.Second, renewAll), down), func(w *world) {
				spec := w.hold(lease)
				l := w.add("a", "k", spec)
				w.until(4600 * ms)
				w.Update(l, func(s *Spec) { s.Deadline, s.Renews = set, false })
				w.until(5500 * ms)
				require.Equal(t, set, l.Deadline())
			})
		})
	}
}

func TestALateAnswerKeepsNoExtensionThatALaterBeatMayTakeBack(t *testing.T) {
	inWorld(t, script(after(2*time.Second, always(Outcome{Left: time.Minute})), hang), func(w *world) {
		spec := w.hold(lease)
		spec.Deadline, spec.Beyond = time.Minute, time.Hour
		l := w.add("a", "k", spec)
		w.until(4600 * ms)
		w.Update(l, func(s *Spec) { s.Beyond = 0 }) // it was taken back
		w.until(6 * time.Second)
		require.Len(t, w.times(), 2)
		require.Equal(t, Deadline(4800*ms, lease, lease), l.Deadline())
	})
}

func TestALateAnswerToARemovedLeaseIsIgnored(t *testing.T) {
	inWorld(t, script(after(2*time.Second, always(Outcome{Left: time.Second})), renewAll), func(w *world) {
		l := w.add("a", "k", w.hold(lease))
		w.until(4700 * ms)
		w.Remove(l)
		w.requireNothingLeft()
		w.addTo(l, "other", w.hold(lease))
		w.until(time.Minute)
		w.requireAlive("a")
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

func TestStopEndsWhatIsInFlightAndWhatIsLate(t *testing.T) {
	var returned atomic.Int32
	slow := func(ctx context.Context, _ string, _ []*Lease) ([]Outcome, error) {
		<-ctx.Done()
		time.Sleep(50 * ms)
		returned.Add(1)
		return nil, ctx.Err()
	}
	inWorld(t, slow, func(w *world) {
		for i := range 60 {
			w.add(fmt.Sprint(i), "k", w.hold(lease))
		}
		w.until(5 * time.Second)
		sent := len(w.times())
		require.Greater(t, sent, 20)
		require.Zero(t, returned.Load())
		w.Stop()
		require.Equal(t, 5050*ms, w.clock.Now())
		require.EqualValues(t, sent, returned.Load())
		w.until(time.Minute)
		require.Len(t, w.times(), sent)
		require.Empty(t, w.ended)
	}, func(cfg *Config) { cfg.BatchSize = 2 })
}
