package heartbeat

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHoldOfALongerLeaseIsRenewedWithinWhatTheWaitLeft(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		l := w.add("a", "k", w.claim(lease))
		w.until(92 * ms) // 8816 ms are left of the wait lease
		w.Update(l, func(s *Spec) { s.Lease, s.Ends = time.Minute, true })
		w.until(4 * time.Minute)
		first := 92*ms + (lease-184*ms)/3
		require.Equal(t, []time.Duration{first, first + 20*time.Second}, w.times()[:2])
		w.requireAlive("a")
	})
}

func TestHoldOfAShorterLeaseIsRenewedAtAThirdOfIt(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		l := w.add("a", "k", w.claim(lease))
		w.until(500 * ms)
		w.Update(l, func(s *Spec) { s.Lease, s.Ends = 900*ms, true })
		w.beatsBy(1500*ms, 800*ms, 1100*ms, 1400*ms)
	})
}

func TestLeaseWithoutADeadlineIsDueAThirdAfterItWasAdded(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.until(time.Second)
		w.add("a", "k", Spec{Lease: lease, Renews: true})
		w.beatsBy(5*time.Second, 4*time.Second)
	})
}

func TestUpdateMovesWhatIsDue(t *testing.T) {
	inWorld(t, down, func(w *world) {
		l := w.add("a", "k", w.hold(lease), func(s *Spec) { s.Renews = false })
		w.until(2 * time.Second)
		w.Update(l, func(s *Spec) {
			s.Deadline = Deadline(2*time.Second, lease, lease)
			s.Warn = 4 * time.Second
			s.Limit = 10 * time.Second
		})
		w.beatsBy(5*time.Second, 5*time.Second)
		require.Equal(t, []time.Duration{4 * time.Second}, w.warns["a"])
		w.Update(l, func(s *Spec) { s.Limit = 0 })
		w.endsBy(time.Minute, "a", 11*time.Second-92*ms, ErrDeadline)
	})
}

func TestUpdateThatShortensIsFollowedAtOnce(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		l := w.add("a", "k", w.hold(lease), func(s *Spec) { s.Renews = false })
		w.until(time.Second)
		require.True(t, w.Update(l, func(s *Spec) { s.Deadline = 1001 * ms }))
		w.endsBy(1001*ms, "a", 1001*ms, ErrDeadline)
		l = w.add("b", "k", w.hold(lease))
		require.True(t, w.Update(l, func(s *Spec) { s.Limit = 1 }))
		synctest.Wait()
		w.requireEnd("b", 1001*ms, ErrLimit)
	})
}

func TestUpdateOfSomethingElseDuringAFlightLetsTheAnswerCount(t *testing.T) {
	inWorld(t, after(time.Second, renewAll), func(w *world) {
		l := w.add("a", "k", w.claim(lease))
		w.until(3500 * ms)
		require.True(t, w.Update(l, func(s *Spec) { s.Ends = true }))
		w.until(4 * time.Second)
		require.Equal(t, 12*time.Second-92*ms, l.Deadline())
		w.beatsBy(6*time.Second, 3000*ms, 6000*ms)
	})
}

func TestHoldThatBecomesForeverLetsOthersEnd(t *testing.T) {
	inWorld(t, down, func(w *world) {
		provisional := w.add("provisional", "k", w.hold(lease))
		w.until(time.Second)
		w.add("other", "k", w.hold(lease))
		w.Update(provisional, func(s *Spec) { s.Deadline, s.Renews = 0, false })
		_, due := w.all()
		require.Equal(t, 2, due, "their lane, and the other: nothing will happen to it by itself")
		w.endsBy(time.Minute, "other", 10*time.Second-92*ms, ErrDeadline)
		w.requireAlive("provisional")
	})
}

func TestRemovedLeaseIsLeftAlone(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		l := w.add("a", "k", w.hold(lease), func(s *Spec) { s.Warn, s.Limit = time.Second, 2*time.Second })
		other := w.add("b", "k", w.hold(lease))
		w.Remove(l)
		w.Remove(l)
		w.Remove(&Lease{})
		for _, gone := range []*Lease{l, {}} {
			require.False(t, w.Update(gone, func(*Spec) { t.Error("called for a lease that is not there") }))
		}
		w.until(3 * time.Second)
		require.Empty(t, w.warns)
		w.requireAlive("a")
		require.Equal(t, []string{"b"}, w.calls()[0].claims)
		require.Equal(t, 2*time.Second, l.Deadline(), "still readable")
		require.ErrorIs(t, l.Err(w.clock.Now()), ErrLimit, "and still compared")

		w.Remove(other)
		w.until(time.Hour)
		require.Len(t, w.times(), 1)
		w.requireNothingLeft()
	})
}

func TestAddedAnewPausesAsIfNew(t *testing.T) {
	inWorld(t, down, func(w *world) {
		l := w.add("a", "k", w.claim(lease))
		w.until(4 * time.Second)
		w.addTo(l, "k", w.claim(lease))
		w.beatsBy(8*time.Second, 3000*ms, 3300*ms, 3900*ms, 7000*ms, 7300*ms, 7900*ms)
	})
}

func TestNewLeasesOfLikePaceWaitForWhatIsInFlightForOldOnes(t *testing.T) {
	inWorld(t, script(hang, renewAll), func(w *world) {
		old := w.add("old", "k", w.hold(6*lease))
		w.until(18 * time.Second) // hangs for 9 s
		w.Remove(old)
		w.add("new", "k", w.hold(4*lease))
		w.add("quick", "k", w.hold(2*lease))
		w.Kick("k")
		w.until(28 * time.Second)
		require.Equal(t, map[string][]time.Duration{
			"old":   {18 * time.Second},
			"new":   {27 * time.Second},
			"quick": {18 * time.Second, 24 * time.Second},
		}, w.turns())
		w.requireAlive("new", "quick")
	})
}

func TestUpdateToAnotherPaceChangesLanes(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		l := w.add("a", "k", w.hold(time.Minute))
		w.add("b", "k", w.hold(time.Minute))
		w.until(time.Second)
		w.Update(l, func(s *Spec) { s.Pace = lease })
		w.until(10 * time.Second)
		require.Equal(t, map[string][]time.Duration{"a": {3 * time.Second, 6 * time.Second, 9 * time.Second}}, w.turns())
		require.Equal(t, lease, w.calls()[0].limit)
		w.requireLanes(trackOf("k", time.Minute), trackOf("k", lease))
		w.Update(l, func(s *Spec) { s.Pace = 0 })
		w.requireLanes(trackOf("k", time.Minute)) // and back
		w.until(20 * time.Second)
		require.Equal(t, []string{"b"}, w.calls()[3].claims)
	})
}

func TestUpdateToAnotherPaceDuringAFlight(t *testing.T) {
	for _, test := range []struct {
		name string
		pace time.Duration
		kick bool
		want time.Duration
	}{
		{"due later", 3 * time.Second, false, 21200 * ms},
		{"due before it is back", 600 * ms, false, 20500 * ms},
		{"kicked", 3 * time.Second, true, 20500 * ms},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, script(after(500*ms, renewAll), hang), func(w *world) {
				l := w.add("a", "k", w.hold(time.Minute))
				w.until(20200 * ms)
				w.Update(l, func(s *Spec) { s.Pace = test.pace })
				if test.kick {
					w.Kick("k")
				}
				w.beatsBy(test.want, 20*time.Second, test.want) // never twice in flight
				require.Equal(t, test.pace, w.calls()[1].limit)
				w.requireLanes(trackOf("k", test.pace))
				w.Remove(l)
				w.until(time.Minute)
				w.requireNothingLeft()
			})
		})
	}
}

func TestRemoveHoldsBackACallbackThatIsDue(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		var leases [2]Lease
		var ends int
		for i := range leases {
			spec := w.hold(lease)
			spec.Limit = time.Second
			spec.Ended = func(*Lease, error) {
				ends++
				w.Remove(&leases[1-i])
			}
			leases[i].Claim = "one of two that end in the same moment"
			w.Add(&leases[i], "k", spec)
		}
		w.until(time.Minute)
		require.Equal(t, 1, ends)
	})
}
