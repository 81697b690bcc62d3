package heartbeat

import (
	"context"
	"slices"
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
		w.beatsBy(6*time.Second, 3000*ms, 6000*ms) // its turn stays where it was
		w.endsBy(time.Minute, "a", 12*time.Second-92*ms, ErrDeadline)
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

func TestUpdateDuringAFlightKeepsItsDeadline(t *testing.T) {
	stale := after(time.Second, always(Outcome{Left: 2 * time.Second}))
	inWorld(t, script(stale, renewAll), func(w *world) {
		l := w.add("a", "k", w.hold(lease), func(s *Spec) { s.Renews = false })
		w.until(3500 * ms)
		extended := Deadline(3500*ms, lease, lease)
		require.True(t, w.Update(l, func(s *Spec) { s.Deadline = extended }))
		w.until(6 * time.Second)
		require.Equal(t, extended, l.Deadline(), "the beat began before the extension")
		w.beatsBy(6500*ms, 3000*ms, 6500*ms)
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
		l := w.add("a", "k", w.hold(lease), func(s *Spec) { s.Warn, s.Limit = time.Second, 2*time.Second })
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
		w.requireNothingLeft()
	})
}

func TestRemoveDuringAFlight(t *testing.T) {
	for name, answer := range map[string]server{"answered": renewAll, "failed": down} {
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
				w.requireNothingLeft()
			})
		})
	}
}

// As a claim does that an answer ends.
func TestALeaseThatBeatRemovesBeforeItAnswersStaysRemoved(t *testing.T) {
	for name, trip := range map[string]time.Duration{"in time": 100 * ms, "late": 1600 * ms} {
		t.Run(name, func(t *testing.T) {
			var remove func(*Lease)
			inWorld(t, after(trip, func(ctx context.Context, key string, leases []*Lease) ([]Outcome, error) {
				for _, l := range leases {
					if l.Claim != "other" {
						remove(l)
					}
				}
				return renewAll(ctx, key, leases)
			}), func(w *world) {
				remove = w.Remove
				hold, claim := w.add("hold", "k", w.hold(lease)), w.add("claim", "k", w.claim(lease))
				other := w.add("other", "k", w.hold(lease))
				w.until(time.Minute)
				w.requireAlive("hold", "claim", "other")
				require.Equal(t, lease-92*ms, hold.Deadline())
				require.Equal(t, lease-92*ms, claim.Deadline())
				first := slices.Concat(w.calls()[0].claims, w.calls()[1].claims) // those that hold, and those that wait
				require.ElementsMatch(t, []string{"hold", "claim", "other"}, first)
				for _, call := range w.calls()[2:] {
					require.Equal(t, []string{"other"}, call.claims)
				}
				w.Remove(other)
				w.until(2 * time.Minute) // what is in flight is back
				w.requireNothingLeft()
			})
		})
	}
}

func TestAddedAnewIgnoresTheOldFlight(t *testing.T) {
	inWorld(t, after(100*ms, renewAll), func(w *world) {
		l := w.add("a", "k", w.claim(lease))
		w.until(3050 * ms)
		w.addTo(l, "k", w.claim(lease)) // it asked again, and stands again
		w.until(6050 * ms)
		require.Equal(t, Deadline(3050*ms, lease, lease), l.Deadline())
		require.Equal(t, []time.Duration{3000 * ms, 6050 * ms}, w.times())
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

func TestAddedAnewAtAnotherPaceLeavesItsLane(t *testing.T) {
	inWorld(t, script(after(1400*ms, always(Outcome{Left: lease})), renewAll), func(w *world) {
		l := w.add("a", "k", w.claim(lease))
		w.until(3 * time.Second)
		w.addTo(l, "k", w.hold(900*ms)) // granted while its beat as a waiter hangs
		waited := w.claim(lease)
		w.requireLanes(waited.track("k"), trackOf("k", 900*ms)) // the old one has a batch in flight
		w.until(4 * time.Second)
		require.Equal(t, map[string][]time.Duration{"a": {3000 * ms, 3300 * ms, 3600 * ms, 3900 * ms}}, w.turns())
		w.until(5 * time.Second)
		w.requireAlive("a")
		w.requireLanes(trackOf("k", 900*ms))
		require.Equal(t, Deadline(4800*ms, 900*ms, 900*ms), l.Deadline())
		w.Remove(l)
		w.requireNothingLeft()
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
