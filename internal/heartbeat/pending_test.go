package heartbeat

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
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
