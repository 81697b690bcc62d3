package heartbeat

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// flushed is one call of Beat.
type flushed struct {
	at    time.Duration
	keys  []string
	limit time.Duration
}

// flushes returns the calls of Beat so far.
func (w *world) flushes() []flushed {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.flushed)
}

// sizes returns how many batches the flushes had, the largest first.
func (w *world) sizes() (sizes []int) {
	for _, call := range w.flushes() {
		sizes = append(sizes, len(call.keys))
	}
	slices.Sort(sizes)
	slices.Reverse(sizes)
	return sizes
}

func TestAFlushTakesNoMoreThanItsPaceLeavesTimeFor(t *testing.T) {
	for pace, most := range map[time.Duration]int{
		4 * ms: 1, 20 * ms: 1, 35 * ms: 1, 40 * ms: 1, 70 * ms: 3, 200 * ms: 7, 600 * ms: 28, 1100 * ms: 50, time.Hour: 50,
	} {
		t.Run(fmt.Sprint(pace), func(t *testing.T) {
			inWorld(t, nil, func(w *world) {
				for i := range 60 {
					w.add(fmt.Sprint(i), fmt.Sprint(i), w.claim(time.Hour), func(s *Spec) { s.Pace = pace })
				}
				w.until(pace / 3)
				require.Equal(t, most, w.sizes()[0])
			})
		})
	}
}

func TestAFlushTakesNoBatchAfterAsManyLeasesAsOneMayHave(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		for i := range 10 {
			for _, key := range []string{"a", "b", "c", "d", "e"} {
				w.add(fmt.Sprint(key, i), key, w.hold(lease))
			}
		}
		w.until(3 * time.Second)
		require.Equal(t, []int{2, 2, 1}, w.sizes())
	}, func(cfg *Config) { cfg.BatchSize = 20 })
}

func TestPacesThatAreNotAlikeShareNoFlush(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.add("long", "k", w.hold(20*lease))
		w.add("long, too", "l", w.hold(22*lease))
		w.until(19 * lease / 3)
		w.add("short", "m", w.hold(lease))
		w.add("short, too", "n", w.hold(lease))
		w.until(20 * lease / 3)
		require.Equal(t, []int{2, 1}, w.sizes())
		for _, call := range w.flushes() {
			require.Equal(t, map[int]time.Duration{1: 20 * lease, 2: lease}[len(call.keys)], call.limit)
		}
	})
}

func TestALaneThatIsDueWithinANinetiethGoesAlong(t *testing.T) {
	inWorld(t, after(100*ms, renewAll), func(w *world) {
		for i, at := range []time.Duration{0, 100 * ms, 101 * ms} {
			w.until(at)
			w.add(fmt.Sprint(i), fmt.Sprint(i), w.hold(lease))
		}
		w.until(6200 * ms)
		var at []time.Duration
		for _, call := range w.flushes() {
			at = append(at, call.at)
		}
		require.Equal(t, []time.Duration{3000 * ms, 3101 * ms, 6000 * ms, 6101 * ms}, at)
		keys := func(i int) []string { return slices.Sorted(slices.Values(w.flushes()[i].keys)) }
		require.Equal(t, []string{"0", "1"}, keys(0))
		require.Equal(t, []string{"2"}, keys(1))
		require.Equal(t, []string{"0", "1"}, keys(2), "from then on together")
	})
}

func TestALaneThatWaitsForItsTurnDoesNotGoAlong(t *testing.T) {
	// Twenty batches of one key in a third of a lease, and one of another in each half of
	// the time between two of them.
	const size, many = 10, 200
	count := func(others int) (batches int) {
		inWorld(t, nil, func(w *world) {
			w.holds(many, "k", lease)
			for i := range others {
				w.until(time.Duration(i) * 75 * ms)
				w.add(fmt.Sprint("other ", i), fmt.Sprint("other ", i), w.hold(lease))
			}
			w.until(2 * lease)
			batches = len(w.times("k"))
		}, func(cfg *Config) { cfg.BatchSize = size })
		return batches
	}
	require.Equal(t, count(0), count(40))
}

func TestABatchOfAFlushIsAnsweredByItself(t *testing.T) {
	answer := func(ctx context.Context, key string, leases []*Lease) ([]Outcome, error) {
		switch key {
		case "hangs":
			return hang(ctx, key, leases)
		case "fails":
			return down(ctx, key, leases)
		case "slow":
			return after(time.Second, renewAll)(ctx, key, leases)
		}
		return renewAll(ctx, key, leases)
	}
	inWorld(t, answer, func(w *world) {
		keys := []string{"fails", "hangs", "renews", "slow"}
		leases := map[string]*Lease{}
		for _, key := range keys {
			leases[key] = w.add(key, key, w.hold(lease))
		}
		first, renewed := lease-Margin(lease), 3*time.Second+lease-Margin(lease)
		w.until(3 * time.Second)
		require.Equal(t, keys, slices.Sorted(slices.Values(w.flushes()[0].keys)))
		require.Equal(t, renewed, leases["renews"].Deadline(), "at once")
		require.Equal(t, first, leases["slow"].Deadline())
		require.Equal(t, []time.Duration{3 * time.Second}, w.failed("fails"))
		w.until(4 * time.Second)
		require.Equal(t, renewed, leases["slow"].Deadline())
		w.until(4500 * ms)
		require.Equal(t, []time.Duration{4500 * ms}, w.failed("hangs"), "after a sixth")
		w.until(12 * time.Second)
		require.Equal(t, []time.Duration{3000 * ms, 6000 * ms, 9000 * ms, 12000 * ms}, w.times("renews"))
		require.Equal(t, []time.Duration{3000 * ms, 3300 * ms, 3900 * ms, 5100 * ms}, w.times("fails")[:4])
		require.Equal(t, []time.Duration{3000 * ms, 4800 * ms, 6900 * ms}, w.times("hangs")[:3])
		w.requireEnd("hangs", first, ErrDeadline)
		w.requireEnd("fails", first, ErrDeadline)
		w.requireAlive("renews", "slow")
	})
}

func TestWhatBeatDoesNotAnswerHasFailed(t *testing.T) {
	var again func(int, []Outcome, error)
	forgets := func(ctx context.Context, batches []Batch, answer func(int, []Outcome, error)) {
		for i, b := range batches {
			if b.Key == "renews" {
				outcomes, err := renewAll(ctx, b.Key, b.Leases)
				answer(i, outcomes, err)
			}
		}
		again = answer
	}
	inWorld(t, nil, func(w *world) {
		spec := w.hold(lease)
		var failures []error
		spec.Failed = func(_ *Lease, err error) { failures = append(failures, err) }
		w.Add(&Lease{Claim: "forgotten"}, "forgets", spec)
		l := w.add("renewed", "renews", w.hold(lease))
		w.until(3 * time.Second)
		require.Equal(t, []error{ErrNoAnswer}, failures)
		require.Empty(t, w.failed("renewed"))
		renewed := 3*time.Second + lease - Margin(lease)
		require.Equal(t, renewed, l.Deadline())
		for i := range 2 {
			again(i, []Outcome{{Left: time.Hour}}, nil) // which nobody may do
		}
		require.Equal(t, renewed, l.Deadline())
	}, func(cfg *Config) { cfg.Beat = forgets })
}

// As ten thousand with a lease of 5 s are.
func TestFourThousandKeysWithALeaseOfTwoSecondsAreRenewedInFewFlushes(t *testing.T) {
	const many, length, seconds = 4000, 2 * time.Second, 6
	inWorld(t, after(2*ms, renewAll), func(w *world) {
		for i := range many {
			if i%100 == 0 {
				time.Sleep(10 * ms)
			}
			w.add(fmt.Sprint(i), fmt.Sprint(i), w.hold(length))
		}
		begun := w.clock.Now()
		w.until(begun + seconds*time.Second)
		sizes := w.sizes()
		calls := len(w.calls())
		t.Logf("%d batches in %d flushes", calls, len(sizes))
		require.Less(t, float64(len(sizes)), float64(calls)/45)
		require.InDelta(t, many*seconds*3/length.Seconds(), calls, many*seconds*3/length.Seconds()/10)
		lost := len(w.ended)
		require.Zero(t, lost)
	}, func(cfg *Config) { cfg.Rand = nil })
}

// queue is a server that takes a while for each batch, one after the other.
func queue(each time.Duration) server {
	var mu sync.Mutex
	var free time.Time
	return func(ctx context.Context, key string, leases []*Lease) ([]Outcome, error) {
		mu.Lock()
		if now := time.Now(); free.Before(now) {
			free = now
		}
		free = free.Add(each)
		wait := time.Until(free)
		mu.Unlock()
		return after(wait, renewAll)(ctx, key, leases)
	}
}

func TestWhatIsDueAtOnceIsNotSentFasterThanItIsAnswered(t *testing.T) {
	// All of it takes the server 1.5 s of a lease of 6 s: more than a sixth.
	inWorld(t, queue(time.Second/2000), func(w *world) {
		const many = 3000
		w.holds(many, "", 6*time.Second)
		w.until(time.Second)
		w.Kick("")
		w.until(20 * time.Second)
		require.Empty(t, w.fails)
		require.Empty(t, w.ended)
		// In each third of a lease, and once because they were told to.
		require.InDelta(t, many*10, len(w.calls()), many)
	})
}

func TestACrowdThatIsNeverAnsweredCostsNoOtherItsTurn(t *testing.T) {
	inWorld(t, func(ctx context.Context, key string, leases []*Lease) ([]Outcome, error) {
		if key[0] == 'h' {
			return hang(ctx, key, leases)
		}
		return renewAll(ctx, key, leases)
	}, func(w *world) {
		for i := range 1500 {
			w.add(fmt.Sprint("hangs ", i), fmt.Sprint("h", i), w.claim(lease))
			w.add(fmt.Sprint("renews ", i), fmt.Sprint("r", i), w.hold(lease))
		}
		w.until(5 * lease)
		require.Empty(t, w.ended)
		for name := range w.fails {
			require.Contains(t, name, "hangs")
		}
	})
}

// TestWhatBecameOfWhatWasSentTogetherIsToldOnce has leases that were added at the given moments, of
// names by their places in the list, and what has been told by the end of a moment.
func TestWhatBecameOfWhatWasSentTogetherIsToldOnce(t *testing.T) {
	t.Parallel()
	odd := func(ctx context.Context, key string, leases []*Lease) ([]Outcome, error) {
		if key == "1" {
			return down(ctx, key, leases)
		}
		return renewAll(ctx, key, leases)
	}
	for name, c := range map[string]struct {
		answer server
		added  []time.Duration
		keys   string // of each lease, one byte
		until  time.Duration
		want   []Flown
	}{
		"answered": {renewAll, []time.Duration{0, 0, 0}, "000", 3 * time.Second, []Flown{{Answered: 3}}},
		// The second one is due at 4.2 s, and waits for the answer to the first, which comes at 4.4 s.
		"late": {
			after(1400*ms, renewAll),
			[]time.Duration{0, 1200 * ms},
			"00", 5800 * ms,
			[]Flown{{Answered: 1}, {Answered: 1, Late: 200 * ms}},
		},
		"failed":            {down, []time.Duration{0}, "0", 3 * time.Second, []Flown{{Unanswered: 1, Err: errDown}}},
		"answered too late": {after(2*time.Second, renewAll), []time.Duration{0}, "0", 5 * time.Second, []Flown{{Unanswered: 1, Err: ErrNoAnswer}}},
		"some of them":      {odd, []time.Duration{0, 0, 0}, "010", 3 * time.Second, []Flown{{Answered: 2, Unanswered: 1, Err: errDown}}},
		"cut short by Stop": {hang, []time.Duration{0}, "0", 3 * time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var told []Flown
			inWorld(t, c.answer, func(w *world) {
				for i, at := range c.added {
					w.until(at)
					w.add(string(rune('a'+i)), c.keys[i:i+1], w.hold(lease))
				}
				w.until(c.until)
				if c.want == nil {
					w.Stop()
				}
				mu.Lock()
				defer mu.Unlock()
				require.Equal(t, c.want, told)
			}, func(cfg *Config) {
				cfg.Over = func(f Flown) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, f)
				}
			})
		})
	}
}
