package heartbeat

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
)

func TestKickMakesEveryLeaseOfTheKeyDue(t *testing.T) {
	inWorld(t, after(10*ms, renewAll), func(w *world) {
		w.add("a", "k", w.hold(lease))
		w.until(time.Second)
		w.add("b", "k", w.hold(lease))
		w.add("c", "k", w.hold(lease))
		w.add("d", "other", w.hold(lease))
		w.until(1500 * ms)
		w.Kick("k")
		w.Kick("unknown")
		w.beatsBy(2*time.Second, 1500*ms, 1510*ms) // in batches of two
		require.Equal(t, "a", w.calls()[0].claims[0])
		w.until(4 * time.Second)
		require.Equal(t, []time.Duration{4000 * ms}, w.times("other"))
		w.until(5 * time.Second)
		require.Equal(t, 4500*ms, w.times("k")[2], "a third after the kick")
	}, func(cfg *Config) { cfg.BatchSize = 2 })
}

func TestKickReachesAllLanesOfAKey(t *testing.T) {
	paces := []time.Duration{ms, 900 * ms, lease, 40 * time.Hour, berth.Forever}
	inWorld(t, after(ms/10, always(Outcome{Skip: true})), func(w *world) {
		w.Kick("k")
		for i, pace := range paces {
			w.add(fmt.Sprint(i), "k", Spec{Lease: pace})
			w.add(fmt.Sprint("other", i), "other", Spec{Lease: pace})
		}
		w.Kick("k")
		synctest.Wait()
		require.Len(t, w.times("k"), len(paces))
		require.Empty(t, w.times("other"))
		w.Kick("k") // all are in flight
		w.until(ms / 10)
		require.Len(t, w.times("k"), 2*len(paces))
	})
}

func TestKickKeepsTheOrderOfWhatIsOverdue(t *testing.T) {
	inWorld(t, after(500*ms, renewAll), func(w *world) {
		for i, claim := range []string{"a", "b", "c", "d", "e"} {
			w.until(time.Duration(i) * ms)
			w.add(claim, "k", w.hold(lease))
		}
		w.until(3200 * ms)
		w.Kick("k")
		w.until(5 * time.Second)
		var claims []string
		for _, call := range w.calls() {
			claims = append(claims, call.claims...)
		}
		require.Equal(t, []string{"a", "b", "c", "d", "e"}, claims[:5])
	}, func(cfg *Config) { cfg.BatchSize = 1 })
}

func TestKickDuringAFlightIsFollowedByAnotherBatch(t *testing.T) {
	for name, first := range map[string]server{"answered": renewAll, "failed": down} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, script(after(100*ms, first), renewAll), func(w *world) {
				w.add("a", "k", w.hold(lease))
				w.until(3050 * ms)
				w.Kick("k")
				w.Kick("k")
				w.beatsBy(5*time.Second, 3000*ms, 3100*ms)
			})
		})
	}
}

func TestHurryMakesOneLeaseDue(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		a := w.add("a", "k", w.hold(lease))
		w.until(2 * time.Second)
		w.add("b", "k", w.hold(lease))
		w.until(2100 * ms)
		w.Hurry(a)
		w.Hurry(&Lease{Claim: "never added"})
		w.until(3 * time.Second)
		require.Len(t, w.calls(), 1)
		require.Equal(t, []string{"a"}, w.calls()[0].claims)
		require.Equal(t, []time.Duration{2100 * ms}, w.times())
	})
}

func TestHurryDuringAFlightSendsThatLeaseOnceMore(t *testing.T) {
	for name, first := range map[string]server{"answered": renewAll, "failed": down} { // b's next try may go along
		t.Run(name, func(t *testing.T) {
			inWorld(t, script(after(100*ms, first), renewAll), func(w *world) {
				a := w.add("a", "k", w.hold(lease))
				w.add("b", "k", w.hold(lease))
				w.until(3050 * ms)
				w.Hurry(a)
				w.Hurry(a)
				w.beatsBy(3150*ms, 3000*ms, 3100*ms)
				require.Equal(t, "a", w.calls()[1].claims[0])
				w.until(5 * time.Second)
				require.LessOrEqual(t, len(w.calls()), 3, "once")
			})
		})
	}
}

func TestStopMayComeBeforeAnythingAndMoreThanOnce(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.Stop()
		w.Stop()
		spec := w.hold(lease)
		l := w.add("a", "k", spec)
		w.Kick("")
		require.False(t, w.Update(l, func(*Spec) { t.Error("called on a stopped engine") }))
		w.until(time.Minute)
		w.requireAlive("a")
		require.Empty(t, w.times())
		w.requireNothingLeft()
		require.Equal(t, spec.Deadline, l.Deadline())
		require.ErrorIs(t, l.Err(w.clock.Now()), ErrDeadline)
		w.Remove(l)
	})
}

// Twenty batches and more are in flight, most of them late.
func TestStopCancelsAndWaitsForWhatIsInFlight(t *testing.T) {
	var returned atomic.Int32
	slow := func(ctx context.Context, _ string, _ []*Lease) ([]Outcome, error) {
		<-ctx.Done()
		time.Sleep(50 * ms)
		returned.Add(1)
		return nil, ctx.Err()
	}
	inWorld(t, slow, func(w *world) {
		other := w.add("other", "other", w.hold(lease))
		w.holds(60, "k", lease)
		w.until(5 * time.Second)
		sent, failed := len(w.times()), maps.Clone(w.fails)
		require.Greater(t, sent, 20)
		require.Zero(t, returned.Load())
		var stops sync.WaitGroup
		for range 3 {
			stops.Go(func() {
				w.Stop()
				if n := returned.Load(); int(n) != sent {
					t.Errorf("Stop returned after %d of %d batches in flight", n, sent)
				}
				if now := w.clock.Now(); now != 5050*ms {
					t.Errorf("Stop returned at %s", now)
				}
			})
		}
		stops.Wait()
		require.False(t, w.Update(other, func(*Spec) { t.Error("called on a stopped engine") }))
		w.Remove(other)
		w.until(time.Minute)
		require.Empty(t, w.ended)
		require.Equal(t, failed, w.fails)
		require.Len(t, w.times(), sent)
	}, func(cfg *Config) { cfg.BatchSize = 2 })
}

func TestStopWaitsForARunningCallbackAndLetsNoOtherBegin(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		spec := w.hold(lease)
		spec.Limit = time.Second
		var left atomic.Int32
		spec.Ended = func(*Lease, error) {
			time.Sleep(10 * ms)
			left.Add(1)
		}
		w.Add(&Lease{Claim: "a"}, "k", spec)
		w.Add(&Lease{Claim: "b"}, "k", spec)
		w.until(1005 * ms)
		w.Stop()
		require.EqualValues(t, 1, left.Load())
		require.Equal(t, 1010*ms, w.clock.Now())
	})
}

// counting counts how often the engine looks at the clock.
type counting struct {
	clock.Clock
	looks atomic.Int32
}

func (c *counting) Now() time.Duration {
	c.looks.Add(1)
	return c.Clock.Now()
}

// counted has an engine look at the clock through it.
func (c *counting) counted(cfg *Config) { c.Clock, cfg.Clock = cfg.Clock, c }

func TestIdleEngineDoesNothing(t *testing.T) {
	looks := &counting{}
	inWorld(t, nil, func(w *world) {
		l := w.add("a", "k", w.hold(lease))
		w.until(time.Minute)
		w.Remove(l)
		w.until(2 * time.Minute)
		before := looks.looks.Load()
		w.until(365 * 24 * time.Hour)
		require.Equal(t, before, looks.looks.Load())
	}, looks.counted)
}

func TestEngineSleepsUntilTheNextEvent(t *testing.T) {
	looks := &counting{}
	inWorld(t, nil, func(w *world) {
		for range 100 {
			w.add("a", "k", w.hold(lease))
		}
		synctest.Wait()
		before := looks.looks.Load()
		w.until(30*time.Second - 1)
		// Two looks while they are pending. Nine batches: a look to send, one when it is
		// back, and at most one more because the answer moved what comes next.
		require.LessOrEqual(t, looks.looks.Load()-before, int32(2+27))
		require.Len(t, w.times(), 9)
	}, looks.counted)
}

func TestWhatComesLaterWakesNobody(t *testing.T) {
	looks := &counting{}
	inWorld(t, nil, func(w *world) {
		w.add("first", "k", w.hold(lease))
		synctest.Wait()
		before := looks.looks.Load()
		for range 100 {
			time.Sleep(ms)
			spec := w.hold(lease)
			l := w.add("a", "k", spec) // looks once
			synctest.Wait()
			w.Remove(l)
			synctest.Wait()
		}
		// The calls of hold look at the clock that the test sees.
		require.EqualValues(t, 100, looks.looks.Load()-before)
	}, looks.counted)
}

func TestLeaseBelowAMillisecondPanics(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		for _, spec := range []Spec{{}, {Lease: ms - 1}, {Lease: lease, Pace: -1}, {Lease: lease, Pace: ms - 1}} {
			require.Panics(t, func() { w.Add(&Lease{}, "k", spec) }, "%+v", spec)
		}
		l := w.add("a", "k", w.hold(lease))
		require.Panics(t, func() { w.Update(l, func(s *Spec) { s.Lease = 0 }) })
		w.until(time.Minute)
		require.NoError(t, l.Err(w.clock.Now()), "and changes nothing")
	})
}

func TestLeaseIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Lease{}), uintptr(208))
}
