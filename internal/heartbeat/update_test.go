package heartbeat

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWaitingClaimBecomesAHold(t *testing.T) {
	inWorld(t, script(renewAll, down), func(w *world) {
		l := w.add("a", "k", w.claim(lease))
		w.until(5 * time.Second)
		require.True(t, w.Update(l, func(s *Spec) {
			require.Equal(t, 12*time.Second-92*ms, s.Deadline, "f sees that of the last answer")
			s.Ends = true
		}))
		require.Equal(t, 12*time.Second-92*ms, l.Deadline())
		w.until(6 * time.Second)
		require.Equal(t, []time.Duration{3000 * ms, 6000 * ms}, w.times(), "its turn stays where it was")
		w.until(time.Minute)
		w.requireEnd("a", 12*time.Second-92*ms, ErrDeadline)
	})
}

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
		w.until(1500 * ms)
		require.Equal(t, []time.Duration{800 * ms, 1100 * ms, 1400 * ms}, w.times())
	})
}

func TestLeaseWithoutADeadlineIsDueAThirdAfterItWasAdded(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.until(time.Second)
		w.add("a", "k", Spec{Lease: lease, Renews: true})
		w.until(5 * time.Second)
		require.Equal(t, []time.Duration{4 * time.Second}, w.times())
	})
}

func TestUpdateMovesWhatIsDue(t *testing.T) {
	inWorld(t, down, func(w *world) {
		fixed := w.hold(lease)
		fixed.Renews = false
		l := w.add("a", "k", fixed)
		w.until(2 * time.Second)
		w.Update(l, func(s *Spec) {
			s.Deadline = Deadline(2*time.Second, lease, lease)
			s.Warn = 4 * time.Second
			s.Limit = 10 * time.Second
		})
		w.until(5 * time.Second)
		require.Equal(t, []time.Duration{5 * time.Second}, w.times())
		require.Equal(t, []time.Duration{4 * time.Second}, w.warns["a"])
		w.Update(l, func(s *Spec) { s.Limit = 0 })
		w.until(time.Minute)
		w.requireEnd("a", 11*time.Second-92*ms, ErrDeadline)
	})
}

func TestUpdateThatShortensIsFollowedAtOnce(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		fixed := w.hold(lease)
		fixed.Renews = false
		l := w.add("a", "k", fixed)
		w.until(time.Second)
		require.True(t, w.Update(l, func(s *Spec) { s.Deadline = 1001 * ms }))
		w.until(1001 * ms)
		w.requireEnd("a", 1001*ms, ErrDeadline)
		l = w.add("b", "k", w.hold(lease))
		require.True(t, w.Update(l, func(s *Spec) { s.Limit = 1 }))
		synctest.Wait()
		w.requireEnd("b", 1001*ms, ErrLimit)
	})
}

func TestUpdateDuringAFlightKeepsItsDeadline(t *testing.T) {
	stale := after(time.Second, always(Outcome{Left: 2 * time.Second}))
	inWorld(t, script(stale, renewAll), func(w *world) {
		spec := w.hold(lease)
		spec.Renews = false
		l := w.add("a", "k", spec)
		w.until(3500 * ms)
		extended := Deadline(3500*ms, lease, lease)
		require.True(t, w.Update(l, func(s *Spec) { s.Deadline = extended }))
		w.until(6 * time.Second)
		require.Equal(t, extended, l.Deadline(), "the beat began before the extension")
		w.until(6500 * ms)
		require.Equal(t, []time.Duration{3000 * ms, 6500 * ms}, w.times())
		require.Equal(t, Deadline(6500*ms, lease, lease), l.Deadline(), "the next counts again")
	})
}

func TestUpdateOfSomethingElseDuringAFlightLetsTheAnswerCount(t *testing.T) {
	inWorld(t, after(time.Second, renewAll), func(w *world) {
		l := w.add("a", "k", w.claim(lease))
		w.until(3500 * ms)
		require.True(t, w.Update(l, func(s *Spec) { s.Ends = true }))
		w.until(4 * time.Second)
		require.Equal(t, 12*time.Second-92*ms, l.Deadline())
		w.until(6 * time.Second)
		require.Equal(t, []time.Duration{3000 * ms, 6000 * ms}, w.times())
	})
}

func TestGoneCountsDespiteAnUpdateDuringTheFlight(t *testing.T) {
	inWorld(t, after(time.Second, always(Outcome{Gone: errGone})), func(w *world) {
		l := w.add("a", "k", w.hold(lease))
		w.until(3500 * ms)
		w.Update(l, func(s *Spec) { s.Deadline = time.Hour })
		w.until(4 * time.Second)
		w.requireEnd("a", 4*time.Second, errGone)
	})
}

func TestHoldThatBecomesForeverLetsOthersEnd(t *testing.T) {
	inWorld(t, down, func(w *world) {
		provisional := w.add("provisional", "k", w.hold(lease))
		w.until(time.Second)
		w.add("other", "k", w.hold(lease))
		w.Update(provisional, func(s *Spec) { s.Deadline, s.Renews = 0, false })
		require.Equal(t, 1, w.events.Len(), "nothing will happen to it by itself")
		w.until(time.Minute)
		w.requireEnd("other", 10*time.Second-92*ms, ErrDeadline)
		w.requireAlive("provisional")
	})
}

func TestUpdateNeverRevives(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		never := func(*Spec) { t.Error("called for a lease that is not there") }
		require.False(t, w.Update(&Lease{}, never))

		spec := w.hold(lease)
		spec.Deadline = 1
		time.Sleep(time.Nanosecond)
		l := w.add("a", "k", spec)
		require.False(t, w.Update(l, never))
		synctest.Wait()
		w.requireEnd("a", 1, ErrDeadline)
		require.False(t, w.Update(l, never))
	})
}

func TestRemovedLeaseIsLeftAlone(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		spec := w.hold(lease)
		spec.Warn, spec.Limit = time.Second, 2*time.Second
		l := w.add("a", "k", spec)
		other := w.add("b", "k", w.hold(lease))
		w.Remove(l)
		w.Remove(l)
		w.Remove(&Lease{})
		w.until(3 * time.Second)
		require.Empty(t, w.warns)
		w.requireAlive("a")
		require.Equal(t, []string{"b"}, w.calls()[0].claims)
		require.Equal(t, 2*time.Second, l.Deadline(), "still readable")
		require.ErrorIs(t, l.Err(w.clock.Now()), ErrLimit, "and still compared")

		w.Remove(other)
		w.until(time.Hour)
		require.Len(t, w.times(), 1)
		require.Empty(t, w.lanes)
		require.Zero(t, w.ready.Len()+w.events.Len())
	})
}

func TestRemoveDuringAFlight(t *testing.T) {
	for name, answer := range map[string]server{
		"answered": renewAll, "gone": always(Outcome{Gone: errGone}), "failed": down,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, after(100*ms, answer), func(w *world) {
				l := w.add("a", "k", w.hold(lease))
				w.until(3050 * ms)
				w.Remove(l)
				w.until(time.Minute)
				w.requireAlive("a")
				require.Equal(t, lease-92*ms, l.Deadline())
				require.Len(t, w.times(), 1)
				require.Empty(t, w.fails)
				require.Empty(t, w.lanes)
			})
		})
	}
}

func TestAddedAnewIgnoresTheOldFlight(t *testing.T) {
	inWorld(t, script(after(100*ms, always(Outcome{Gone: errGone})), renewAll), func(w *world) {
		l := w.add("a", "k", w.claim(lease))
		w.until(3050 * ms)
		w.addTo(l, "k", w.claim(lease)) // it asked again, and stands again
		w.until(time.Minute)
		w.requireAlive("a")
		require.NoError(t, l.Err(w.clock.Now()))
		require.Equal(t, []time.Duration{3000 * ms, 6050 * ms}, w.times()[:2])
	})
}

func TestAddedAnewPausesAsIfNew(t *testing.T) {
	inWorld(t, down, func(w *world) {
		l := w.add("a", "k", w.claim(lease))
		w.until(4 * time.Second)
		w.addTo(l, "k", w.claim(lease))
		w.until(8 * time.Second)
		require.Equal(t, []time.Duration{3000 * ms, 3300 * ms, 3900 * ms, 7000 * ms, 7300 * ms, 7900 * ms}, w.times())
	})
}

func TestNewLeasesOfAKeyWaitForWhatIsInFlightForOldOnes(t *testing.T) {
	inWorld(t, script(hang, renewAll), func(w *world) {
		old := w.add("old", "k", w.hold(6*lease))
		w.until(18 * time.Second) // hangs for 9 s
		w.Remove(old)
		w.add("new", "k", w.hold(2*lease))
		w.until(28 * time.Second)
		require.Equal(t, []time.Duration{18 * time.Second, 27 * time.Second}, w.times())
		w.requireAlive("new")
	})
}

func TestRemoveHoldsBackACallbackThatIsDue(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		var leases [2]Lease
		var ends int
		for i := range leases {
			spec := w.hold(lease)
			spec.Limit = time.Second
			spec.Ended = func(error) {
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
