package heartbeat

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
)

// waiting returns whether the lease is pending.
func (w *world) waiting(l *Lease) bool {
	w.Engine.mu.Lock()
	defer w.Engine.mu.Unlock()
	return l.pending
}

func TestALeaseEntersItsLaneWhenItsBeatComesNear(t *testing.T) {
	// They may be taken along from 2 s on, and from 3.53 s.
	for length, earliest := range map[time.Duration]time.Duration{lease: 2 * time.Second, 15900 * ms: 3533 * ms} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				l := w.add("a", "k", w.hold(length))
				w.until(earliest - length/9)
				require.True(t, w.waiting(l))
				w.until(earliest)
				require.False(t, w.waiting(l))
				w.beatsBy(length/3, length/3)
			})
		})
	}
}

func TestWhatHappensSoonIsNeverPending(t *testing.T) {
	const soon = 500 * ms
	for name, change := range map[string]func(*Spec){
		"its deadline": func(s *Spec) { s.Deadline = soon },
		"its limit":    func(s *Spec) { s.Limit = soon },
		"a warning":    func(s *Spec) { s.Warn = soon },
		"its beat":     func(s *Spec) { s.Deadline -= 2500 * ms },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				spec := w.hold(lease)
				change(&spec)
				require.False(t, w.waiting(w.add("a", "k", spec)))
				w.until(soon)
				require.Equal(t, 1, len(w.ended)+len(w.warns)+len(w.times()))
			})
		})
	}
}

func TestWhatHappensToAPendingLeaseHappensInTime(t *testing.T) {
	for _, at := range []time.Duration{1000 * ms, 1500 * ms, 1900 * ms, 2900 * ms} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				spec := w.hold(lease)
				spec.Limit, spec.Warn = at, at-1
				require.True(t, w.waiting(w.add("a", "k", spec)))
				spec.Limit, spec.Deadline = 0, at
				spec.Renews = false
				require.True(t, w.waiting(w.add("b", "k", spec)))
				w.endsBy(time.Minute, "a", at, ErrLimit)
				w.requireEnd("b", at, ErrDeadline)
				require.Equal(t, []time.Duration{at - 1}, w.warns["a"])
			})
		})
	}
}

func TestAPendingLeaseIsToldWhatAnyOtherIs(t *testing.T) {
	for name, touch := range map[string]func(w *world, l *Lease){
		"kicked":          func(w *world, _ *Lease) { w.Kick("k") },
		"kicked with all": func(w *world, _ *Lease) { w.Kick("") },
		"hurried":         func(w *world, l *Lease) { w.Hurry(l) },
		"updated": func(w *world, l *Lease) {
			require.True(w.t, w.Update(l, func(s *Spec) { s.Deadline = 100*ms + 1 })) // a third of what is left
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				l := w.add("a", "k", w.hold(lease))
				other := w.add("b", "other", w.hold(lease))
				w.until(100 * ms)
				require.True(t, w.waiting(l))
				touch(w, l)
				synctest.Wait()
				require.Equal(t, []time.Duration{100 * ms}, w.times("k"))
				require.Equal(t, name == "hurried" || name == "updated", w.waiting(other))
			})
		})
	}
}

func TestPendingLeasesAreRemovedFromAnywhere(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	inWorld(t, nil, func(w *world) {
		for range 50 {
			leases := make([]*Lease, 5)
			for i := range leases {
				spec := w.hold(lease)
				if i == 4 {
					spec.Pace = ms * 20
				}
				leases[i] = w.add(fmt.Sprint(i), fmt.Sprint(i), spec)
			}
			for _, i := range draw.Perm(len(leases)) {
				w.Remove(leases[i])
				w.Remove(leases[i])
			}
			w.requireNothingLeft()
			w.until(w.clock.Now() + time.Duration(draw.IntN(6))*ms)
		}
		w.until(time.Hour)
		require.Empty(t, w.times())
	})
}

func TestAPendingLeaseThatIsAddedAnewStartsAnew(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		l := w.add("a", "k", w.claim(lease))
		other := w.add("b", "k", w.claim(lease))
		w.until(500 * ms)
		w.addTo(l, "other", w.hold(900*ms))
		w.Remove(other)
		w.beatsBy(1400*ms, 800*ms, 1100*ms, 1400*ms)
		require.Equal(t, w.times("other"), w.times())
	})
}

func TestALeaseWithoutEndMayBePending(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		l := w.add("a", "k", Spec{Lease: berth.Forever, Ends: true})
		require.True(t, w.waiting(l))
		w.until(1000 * time.Hour)
		w.Kick("")
		synctest.Wait()
		require.Len(t, w.times(), 1)
	})
}

func TestShortHoldsWakeTheEngineSeldom(t *testing.T) {
	looks := &counting{}
	inWorld(t, nil, func(w *world) {
		w.add("first", "k", w.claim(time.Hour))
		synctest.Wait()
		before := looks.looks.Load()
		const holds = 9000
		for i := range holds {
			l := w.add("a", fmt.Sprint(i%10), w.hold(lease)) // looks once
			time.Sleep(ms)
			w.Remove(l)
		}
		synctest.Wait()
		require.LessOrEqual(t, looks.looks.Load()-before, int32(holds+lease/trackOf("k", lease).while()+1))
	}, looks.counted)
}

// BenchmarkAddRemoveBesideMany is what a short hold of a key of its own costs the engine
// of a client that keeps a thousand others.
func BenchmarkAddRemoveBesideMany(b *testing.B) {
	engine := New(Config{Clock: clock.New(), Beat: apart(renewAll)})
	defer engine.Stop()
	spec := Spec{Lease: 10 * time.Second, Ends: true, Renews: true, Deadline: 10 * time.Second}
	keys := make([]string, 64)
	for i := range keys {
		keys[i] = fmt.Sprint("short ", i)
	}
	for i := range 1000 {
		others := spec
		others.Deadline += time.Duration(i) * time.Second
		engine.Add(new(Lease), fmt.Sprint("long ", i), others)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		var l Lease
		for i := 0; pb.Next(); i++ {
			engine.Add(&l, keys[i%len(keys)], spec)
			engine.Remove(&l)
		}
	})
}
