package heartbeat

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

func TestDeadlineIsStartPlusLeftMinusMargin(t *testing.T) {
	for _, test := range []struct{ start, left, lease, want time.Duration }{
		{0, 10 * time.Second, 10 * time.Second, 9898 * ms},
		{5 * time.Second, 10 * time.Second, 10 * time.Second, 14898 * ms},
		{5 * time.Second, time.Second, 10 * time.Second, 5898 * ms},
		{5 * time.Second, 20 * ms, 20 * ms, 5*time.Second + 20*ms - 2200*time.Microsecond},
		{5 * time.Second, 0, time.Second, 4988 * ms},
		{0, 12 * ms, time.Second, -1}, // and not 0, which is none
		{0, berth.Forever, time.Second, 0},
		{time.Hour, berth.Forever, time.Second, 0},
		{time.Hour, berth.Forever - time.Minute, time.Second, 0},
		{time.Hour, berth.Forever, berth.Forever, 0},
	} {
		require.Equal(t, test.want, Deadline(test.start, test.left, test.lease), "%+v", test)
	}
	require.Equal(t, 102*ms, Margin(10*time.Second))
}

func TestLeaseIsRenewedAtAThird(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		spec := w.hold(lease)
		w.until(40 * ms) // the acquire took that long
		l := w.add("a", "k", spec)
		require.Equal(t, lease-92*ms, l.Deadline())

		w.until(2999 * ms)
		require.Empty(t, w.times())
		w.until(3000 * ms)
		require.Equal(t, 3*time.Second+lease-92*ms, l.Deadline())
		w.beatsBy(10*time.Second, 3000*ms, 6000*ms, 9000*ms)

		w.until(time.Hour)
		require.Len(t, w.times(), 1200)
		require.NoError(t, l.Err(w.clock.Now()))
		w.requireAlive("a")
	})
}

func TestJitterIsDrawnOncePerBatch(t *testing.T) {
	draws := []float64{1, 0.5, 0}
	inWorld(t, nil, func(w *world) {
		w.add("a", "k", w.hold(lease))
		w.add("b", "k", w.hold(lease))
		w.until(12 * time.Second)
		// 3 s, then a tenth earlier, then a twentieth, then none.
		require.Equal(t, []time.Duration{3000 * ms, 5700 * ms, 8550 * ms, 11550 * ms}, w.times())
		for _, call := range w.calls() {
			require.Len(t, call.claims, 2)
		}
	}, func(cfg *Config) {
		cfg.Rand = func() float64 {
			draw := draws[0]
			if len(draws) > 1 {
				draws = draws[1:]
			}
			return draw
		}
	})
}

func TestDueWithinANinthIsTakenAlong(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.add("a", "k", w.hold(lease))
		w.until(1000 * ms)
		w.add("b", "k", w.hold(lease)) // due at 4000: just within
		w.until(1001 * ms)
		w.add("c", "k", w.hold(lease)) // due at 4001
		w.add("d", "other", w.hold(lease))
		w.until(4001 * ms)
		calls := w.calls()
		require.Len(t, calls, 3)
		require.Equal(t, []string{"a", "b"}, calls[0].claims)
		require.Equal(t, 3000*ms, calls[0].at)
		require.Equal(t, 4001*ms, calls[1].at)
		require.ElementsMatch(t, [][]string{{"c"}, {"d"}}, [][]string{calls[1].claims, calls[2].claims})
	})
}

func TestLeaseOfLikePaceIsNotRenewedWithEveryShorterOne(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		const longer = 15900 * ms
		w.add("longer", "k", w.hold(longer))
		w.add("shorter", "k", w.hold(lease))
		w.until(30 * time.Second)
		var along []time.Duration
		for _, call := range w.calls() {
			require.Contains(t, call.claims, "shorter")
			if len(call.claims) == 2 {
				require.Equal(t, longer, call.limit, "the longest")
				along = append(along, call.at)
			}
		}
		require.Equal(t, []time.Duration{longer / 3, longer / 3 * 2, longer, longer / 3 * 4, longer / 3 * 5}, along)
		require.Len(t, w.times(), 11)
	})
}

func TestPacesThatAreNotAlikeGoByThemselves(t *testing.T) {
	for _, test := range []struct {
		a, b  time.Duration
		alike bool
	}{
		{1024 * ms, 2047 * ms, true},
		{1023 * ms, 1024 * ms, false},
		{8192 * ms, 16384*ms - 1, true},
		{8192*ms - 1, 8192 * ms, false},
		{ms, 2*ms - 1, true},
		{ms, 2 * ms, false},
		{1000 * time.Hour, berth.Forever, false},
	} {
		require.Equal(t, test.alike, trackOf("k", test.a) == trackOf("k", test.b), "%v", test)
		require.NotEqual(t, trackOf("k", test.a), trackOf("other", test.a))
	}
	require.Equal(t, tracks, trackOf("k", berth.Forever).bits+1)
}

func TestBatchIsUnansweredAfterASixthOfItsShortestLease(t *testing.T) {
	inWorld(t, script(renewAll, hang), func(w *world) {
		w.add("a", "k", w.hold(lease))
		w.add("b", "k", w.hold(15*time.Second))
		w.beatsBy(7*time.Second, 3*time.Second, 5*time.Second, 6800*ms)
		require.Equal(t, []string{"a"}, w.calls()[0].claims)
		require.ElementsMatch(t, []string{"a", "b"}, w.calls()[1].claims)
		require.Equal(t, map[string][]time.Duration{"a": {6500 * ms}, "b": {6500 * ms}}, w.fails)
	})
}

func TestBatchIsUnansweredAfterTheTimeout(t *testing.T) {
	inWorld(t, hang, func(w *world) {
		w.add("a", "k", w.hold(lease))
		w.until(4 * time.Second)
		require.Equal(t, map[string][]time.Duration{"a": {3200 * ms, 3700 * ms}}, w.fails)
	}, func(cfg *Config) { cfg.Timeout = 200 * ms })
}

func TestFullBatchIsFollowedAtOnceByTheNext(t *testing.T) {
	inWorld(t, after(10*ms, renewAll), func(w *world) {
		for i := range 7 {
			w.until(time.Duration(i) * ms)
			w.add(fmt.Sprint(i), "k", w.hold(lease))
		}
		w.until(4 * time.Second)
		calls := w.calls()
		require.Equal(t, []time.Duration{3000 * ms, 3010 * ms, 3020 * ms}, w.times())
		require.Equal(t, []string{"0", "1", "2"}, calls[0].claims, "the oldest due first")
		require.Equal(t, []string{"3", "4", "5"}, calls[1].claims)
		require.Equal(t, []string{"6"}, calls[2].claims)
	}, func(cfg *Config) { cfg.BatchSize = 3 })
}

func TestBatchTakesTwoHundredByDefault(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.holds(450, "k", lease)
		w.until(3 * time.Second)
		var sizes []int
		for _, call := range w.calls() {
			sizes = append(sizes, len(call.claims))
		}
		require.Equal(t, []int{200, 200, 50}, sizes)
	})
}

func TestFixedLeaseIsNotLoweredByAFailedCheck(t *testing.T) {
	inWorld(t, hang, func(w *world) {
		l := w.add("a", "k", w.hold(time.Minute), func(s *Spec) { s.Renews, s.Pace = false, lease })
		w.until(4 * time.Second)
		require.Len(t, w.times(), 1)
		require.Equal(t, time.Minute-Margin(time.Minute), l.Deadline())
		w.endsBy(time.Hour, "a", time.Minute-Margin(time.Minute), ErrDeadline)
	})
}

func TestPaceTimesTheBeatsAndLeaseTheMargin(t *testing.T) {
	inWorld(t, always(Outcome{Left: time.Hour}), func(w *world) {
		spec := w.hold(time.Hour)
		spec.Pace = lease
		l := w.add("a", "k", spec)
		w.beatsBy(7*time.Second, 3000*ms, 6000*ms)
		require.Equal(t, lease, w.calls()[0].limit)
		require.Equal(t, 6*time.Second+time.Hour-Margin(time.Hour), l.Deadline())
	})
	inWorld(t, nil, func(w *world) {
		w.add("a", "k", w.hold(lease), func(s *Spec) { s.Pace = time.Hour })
		w.beatsBy(7*time.Second, 3000*ms, 6000*ms) // a longer pace changes nothing
	})
}

func TestForeverHoldIsCheckedAndNeverEndsByItself(t *testing.T) {
	inWorld(t, script(always(Outcome{Left: berth.Forever}), down), func(w *world) {
		l := w.add("a", "k", Spec{Lease: berth.Forever, Pace: lease, Ends: true})
		w.until(3 * time.Second)
		require.Len(t, w.times(), 1)
		require.Zero(t, l.Deadline())
		w.until(time.Hour)
		require.Greater(t, len(w.times()), 1000)
		require.NoError(t, l.Err(w.clock.Now()))
		w.requireAlive("a")
	})
}

// As ten thousand leases in batches of two hundred do.
func TestAThousandLeasesInBatchesOfTwentyCostTwentyBatchesASecond(t *testing.T) {
	const leases, size, length = 1000, 20, 10 * time.Second
	for name, spread := range map[string]time.Duration{"added at once": 0, "added at random times": length} {
		t.Run(name, func(t *testing.T) {
			draw, jitter := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, 4))
			inWorld(t, after(2*ms, renewAll), func(w *world) {
				for i := range leases {
					if spread > 0 {
						time.Sleep(time.Duration(draw.ExpFloat64() * float64(spread/leases)))
					}
					w.add(fmt.Sprint(i), "k", w.hold(length))
				}
				begin := w.clock.Now()
				w.until(begin + 45*time.Second)
				times := w.times()
				require.LessOrEqual(t, len(times), 20*45)

				// In every second, once those that came at once have spread.
				settled := slices.IndexFunc(times, func(at time.Duration) bool { return at > begin+15*time.Second })
				busiest := busiestSecond(times[settled:])
				t.Logf("%d batches in 30 s, at most %d in a second", len(times)-settled, busiest)
				require.LessOrEqual(t, busiest, 20)
				require.Empty(t, w.ended)
				require.Empty(t, w.fails)
			}, func(cfg *Config) { cfg.Rand, cfg.BatchSize = jitter.Float64, size })
		})
	}
}

// busiestSecond returns the most times within any second.
func busiestSecond(times []time.Duration) (most int) {
	first := 0
	for i, at := range times {
		for at-times[first] >= time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

func TestFullBatchesSpreadOverTime(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.holds(6, "k", lease)
		w.until(6 * time.Second)
		// Three at once; then each a third of 3 s after the one before, as
		// soon as its leases are within a ninth of being due.
		require.Equal(t, []time.Duration{3000 * ms, 3000 * ms, 3000 * ms, 5000 * ms, 6000 * ms, 6000 * ms}, w.times())
		w.until(9 * time.Second)
		require.Equal(t, []time.Duration{7000 * ms, 8000 * ms, 9000 * ms}, w.times()[6:])
	}, func(cfg *Config) { cfg.BatchSize = 2 })
}
