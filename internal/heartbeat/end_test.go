package heartbeat

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFailedBatchIsRepeatedUntilTheDeadline(t *testing.T) {
	inWorld(t, down, func(w *world) {
		w.add("a", "k", w.hold(lease))
		w.until(time.Minute)
		// Pauses of 300, 600, 1200, and then 1500 ms.
		want := []time.Duration{3000 * ms, 3300 * ms, 3900 * ms, 5100 * ms, 6600 * ms, 8100 * ms}
		require.Equal(t, want, w.times())
		require.Equal(t, want, w.fails["a"])
		w.requireEnd("a", lease-92*ms, ErrDeadline)
	})
}

// Somebody may have kicked it for a push that was lost: then the claim waits for the answer.
func TestAFailedBeatOfALongLeaseIsRepeatedSoon(t *testing.T) {
	inWorld(t, down, func(w *world) {
		w.add("a", "k", w.hold(time.Hour))
		const first = 20 * time.Minute
		w.beatsBy(first+10*time.Second, first, first+time.Second, first+3*time.Second, first+7*time.Second)
	})
}

func TestPausesBeginAnewAfterAnAnswer(t *testing.T) {
	inWorld(t, script(down, down, renewAll, down, renewAll), func(w *world) {
		w.add("a", "k", w.hold(lease))
		w.beatsBy(8*time.Second, 3000*ms, 3300*ms, 3900*ms, 6900*ms, 7200*ms)
		w.requireAlive("a")
	})
}

func TestShortLeaseThatHangsCostsNoLongOneABeat(t *testing.T) {
	answer := func(ctx context.Context, key string, leases []*Lease) ([]Outcome, error) {
		for _, l := range leases {
			if l.Claim == "short" {
				return hang(ctx, key, leases)
			}
		}
		return after(200*ms, renewAll)(ctx, key, leases) // more than a sixth of the short one's
	}
	inWorld(t, answer, func(w *world) {
		w.add("long", "k", w.hold(lease))
		for until := 2 * lease; w.clock.Now() < until; {
			// Always one there, in flight or about to be.
			l := w.add("short", "k", Spec{Lease: 900 * ms, Renews: true})
			w.until(w.clock.Now() + 700*ms)
			w.Remove(l)
		}
		require.NotEmpty(t, w.fails["short"])
		require.Empty(t, w.fails["long"])
		turns := []time.Duration{3000 * ms, 6000 * ms, 9000 * ms, 12000 * ms, 15000 * ms, 18000 * ms}
		require.Equal(t, turns, w.turns()["long"])
		w.requireAlive("long")
	})
}

func TestAnswerDoesNotReviveWhatTheHolderSawEnd(t *testing.T) {
	inWorld(t, after(time.Second, renewAll), func(w *world) {
		l := w.add("a", "k", w.hold(lease))
		w.until(3500 * ms)
		require.NoError(t, l.Err(l.Deadline()-1))
		// The holder read a clock that was a moment ahead of the engine's.
		require.ErrorIs(t, l.Err(l.Deadline()), ErrDeadline)
		require.ErrorIs(t, l.Err(0), ErrDeadline, "once over, over")
		require.False(t, w.Update(l, func(*Spec) { t.Error("it is over") }))
		w.endsBy(time.Minute, "a", lease-92*ms, ErrDeadline)
		require.Equal(t, lease-92*ms, l.Deadline())
	})
}

func TestOutcomesBelongToTheirLeases(t *testing.T) {
	mixed := func(_ context.Context, _ string, leases []*Lease) ([]Outcome, error) {
		outcomes := make([]Outcome, len(leases))
		for i, l := range leases {
			switch l.Claim {
			case "short":
				outcomes[i].Left = time.Second
			case "skipped":
				outcomes[i].Skip = true
			default:
				outcomes[i].Left = lease
			}
		}
		return outcomes, nil
	}
	inWorld(t, mixed, func(w *world) {
		w.add("short", "k", w.hold(lease))
		w.add("skipped", "k", w.hold(lease))
		w.add("renewed", "k", w.hold(lease))
		w.endsBy(30*time.Second, "short", 4*time.Second-92*ms, ErrDeadline)
		w.requireEnd("skipped", lease-92*ms, ErrDeadline)
		w.requireAlive("renewed")
	})
}

func TestWrongNumberOfOutcomesIsAFailure(t *testing.T) {
	none := func(context.Context, string, []*Lease) ([]Outcome, error) { return nil, nil }
	var failure error
	inWorld(t, none, func(w *world) {
		spec := w.hold(lease)
		spec.Failed = func(_ *Lease, err error) { failure = err }
		w.Add(&Lease{Claim: "a"}, "k", spec)
		w.until(3 * time.Second)
		require.EqualError(t, failure, "heartbeat: 0 outcomes for 1 leases")
	})
}

// The holder's own calls renew until the end, and the deadline that each gives is a bit before
// the limit or a bit behind it.
func TestAnUpdateSaysWhetherTheLimitBounds(t *testing.T) {
	for bounded, want := range map[bool]error{true: ErrLimit, false: ErrDeadline} {
		t.Run(want.Error(), func(t *testing.T) {
			inWorld(t, down, func(w *world) {
				l := w.add("a", "k", w.hold(lease), func(s *Spec) { s.Limit = 2 * time.Second })
				for now := ms; w.Update(l, func(s *Spec) {
					s.Deadline, s.Bounded = s.Limit-ms/2, bounded
				}); now += ms {
					w.until(now)
				}
				w.requireEnd("a", 2*time.Second-ms/2, want)
			})
		})
	}
}

func TestADeadlineThatABeatLowersIsNotTheLimit(t *testing.T) {
	inWorld(t, down, func(w *world) {
		w.add("a", "k", w.hold(lease), func(s *Spec) { s.Deadline, s.Limit, s.Bounded = time.Hour, 2*time.Hour, true })
		w.Kick("k")
		w.endsBy(time.Minute, "a", lease-92*ms, ErrDeadline)
	})
}

func TestDeadlineOfALostServerIsNotTheLimit(t *testing.T) {
	inWorld(t, script(renewAll, down), func(w *world) {
		w.add("a", "k", w.hold(lease), func(s *Spec) { s.Limit = time.Minute })
		w.endsBy(time.Hour, "a", 12*time.Second-92*ms, ErrDeadline)
	})
}

func TestLimitNoticedLateIsStillTheLimit(t *testing.T) {
	l := &Lease{}
	l.begin(Spec{Lease: lease, Ends: true, Deadline: 9 * time.Second, Limit: 8 * time.Second})
	require.ErrorIs(t, l.Err(time.Hour), ErrLimit)
	l.begin(Spec{Lease: lease, Ends: true, Deadline: 8 * time.Second, Limit: 9 * time.Second})
	require.ErrorIs(t, l.Err(time.Hour), ErrDeadline)
}

func TestWaitingClaimIsBeatenPastItsDeadline(t *testing.T) {
	inWorld(t, down, func(w *world) {
		l := w.add("a", "k", w.claim(lease))
		w.until(time.Hour)
		require.NoError(t, l.Err(w.clock.Now()))
		w.requireAlive("a")
		require.Equal(t, lease-92*ms, l.Deadline())
		require.InDelta(t, 3600/1.5, len(w.times()), 5, "a sixth of the lease apart")
	})
}

func TestWarningComesOnce(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		spec := w.hold(lease)
		spec.Warn = 5 * time.Minute
		w.add("held", "k", spec)
		spec.Ends = false
		w.add("waits", "k", spec)
		spec.Ends, spec.Limit = true, 5*time.Minute
		w.add("over by then", "k", spec)
		w.until(time.Hour)
		require.Equal(t, []time.Duration{5 * time.Minute}, w.warns["held"])
		require.Equal(t, []time.Duration{5 * time.Minute}, w.warns["waits"])
		require.Empty(t, w.warns["over by then"])
		w.requireEnd("over by then", 5*time.Minute, ErrLimit)
	})
}

// It outstays even its ctx, and is answered well in the end.
func TestDeadlineThatABeatLoweredPassesDuringIt(t *testing.T) {
	inWorld(t, func(ctx context.Context, key string, leases []*Lease) ([]Outcome, error) {
		time.Sleep(20 * time.Second)
		return renewAll(ctx, key, leases)
	}, func(w *world) {
		w.add("a", "k", w.hold(lease), func(s *Spec) { s.Deadline = time.Minute })
		w.endsBy(time.Hour, "a", 12*time.Second-92*ms, ErrDeadline)
	})
}

func TestCallbackThatTakesItsTimeMovesNoDeadline(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		spec := w.hold(lease)
		spec.Limit = time.Second
		spec.Ended = func(*Lease, error) { time.Sleep(10 * ms) }
		w.Add(&Lease{Claim: "a"}, "k", spec)
		spec.Limit, spec.Ended = 1100*ms, nil
		w.add("b", "k", spec)
		w.endsBy(time.Minute, "b", 1100*ms, ErrLimit)
	})
}

func TestCallbacksMayBeNil(t *testing.T) {
	inWorld(t, down, func(w *world) {
		spec := w.hold(lease)
		spec.Warn = time.Second
		l := &Lease{Claim: "a"}
		w.Add(l, "k", spec)
		w.until(time.Minute)
		require.ErrorIs(t, l.Err(0), ErrDeadline)
	})
}

func TestCallbacksMayCallTheEngine(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		l := &Lease{Claim: "a"}
		spec := w.hold(lease)
		spec.Limit = 5 * time.Second
		spec.Ended = func(*Lease, error) {
			w.Kick("")
			w.Remove(l)
			w.addTo(l, "k", w.hold(lease))
		}
		w.Add(l, "k", spec)
		w.until(time.Minute)
		require.NoError(t, l.Err(w.clock.Now()), "added anew, it lives anew")
		w.requireAlive("a")
	})
}

// stoppable is a clock of a machine that can be suspended.
type stoppable struct {
	base      time.Time
	suspended atomic.Int64
}

func (s *stoppable) Now() time.Duration {
	return time.Since(s.base) + time.Duration(s.suspended.Load())
}

func TestAfterASuspensionTheNextCallWakesTheEngine(t *testing.T) {
	for name, touch := range map[string]func(w *world, l *Lease){
		"an add":     func(w *world, _ *Lease) { w.add("b", "other", w.claim(time.Hour)) },
		"a kick":     func(w *world, _ *Lease) { w.Kick("unknown") },
		"an update":  func(w *world, l *Lease) { w.Update(l, func(*Spec) { w.t.Error("it is over") }) },
		"the holder": func(_ *world, l *Lease) { _ = l.Err(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				machine := &stoppable{base: time.Now()}
				w.Engine.clock, w.clock = machine, machine
				l := w.add("a", "k", w.hold(lease))
				w.until(time.Second)
				machine.suspended.Store(int64(time.Hour))
				touch(w, l)
				synctest.Wait()
				require.ErrorIs(t, l.Err(w.clock.Now()), ErrDeadline)
				if name == "the holder" { // knows at once; the engine's timer is late
					w.requireAlive("a")
					time.Sleep(2 * time.Second)
					synctest.Wait()
					w.requireEnd("a", time.Hour+2*trackOf("k", lease).while(), ErrDeadline)
					return
				}
				w.requireEnd("a", time.Hour+time.Second, ErrDeadline)
			})
		})
	}
}
