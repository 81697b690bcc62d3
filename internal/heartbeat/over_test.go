package heartbeat

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
