package refresh

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slow is a source that takes a while, and counts how often it was asked.
type slow struct {
	takes time.Duration
	fails error
	asked atomic.Int64
}

func (s *slow) list(ctx context.Context) ([]string, error) {
	s.asked.Add(1)
	select {
	case <-time.After(s.takes):
		return []string{"a"}, s.fails
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// filled is what Fill has returned, and after how long.
type filled struct {
	asked bool
	after time.Duration
}

// fills calls Fill so many times at once, and returns what they returned.
func (r *refreshes) fills(ctx context.Context, count int) (all []filled) {
	began := time.Now()
	results := make(chan filled, count)
	for range count {
		go func() {
			asked := r.Fill(ctx, r.Answers())
			results <- filled{asked, time.Since(began)}
		}()
	}
	for range count {
		all = append(all, <-results)
	}
	return all
}

func TestWhoFindsThePoolEmptyWaitsForARoundThatAsksTheSource(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		before  func(s *turns) // the refresher starts
		waits   time.Duration  // before Fill is called
		takes   time.Duration  // that the Source needs
		fails   error
		want    filled
		sources int64 // how often Source was asked in the end
	}{
		{"the first round", nil, 0, 3 * time.Second, nil, filled{true, 3 * time.Second}, 1},
		{"one that is under way", nil, time.Second, 3 * time.Second, nil, filled{true, 2 * time.Second}, 1},
		{"the first one where another node has the turn", func(s *turns) { s.postpone(time.Hour) }, 0, time.Second, nil, filled{true, time.Second}, 1},
		{"a new one where another node has the turn", func(s *turns) { s.postpone(time.Hour) }, 5 * time.Second, time.Second, nil, filled{true, time.Second}, 1},
		{"a new one where this node had the turn", nil, 5 * time.Second, time.Second, nil, filled{true, time.Second}, 2},
		{"none where Source was asked a moment ago", nil, 1999 * time.Millisecond, time.Second, nil, filled{false, 0}, 1},
		{"a new one a second after Source was asked", nil, 2 * time.Second, time.Second, nil, filled{true, time.Second}, 2},
		{"one that fails", nil, 0, 3 * time.Second, errMine, filled{true, 3 * time.Second}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTurns(t, func(t *testing.T, s *turns) {
				source := &slow{takes: c.takes, fails: c.fails}
				if c.before != nil {
					c.before(s)
				}
				r := s.refreshes(t, source.list)
				if c.waits > 0 {
					s.after(c.waits)
				}
				for _, got := range r.fills(context.Background(), 8) {
					require.Equal(t, c.want, got)
				}
				require.Equal(t, c.sources, source.asked.Load(), "once for all")
			})
		})
	}
}

func TestThoseWhoComeBeforeARoundHasBegunShareIt(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		source, let := &slow{}, make(chan struct{})
		r := s.refreshes(t, source.list, func(cfg *Config) {
			cfg.jitter = func(time.Duration) time.Duration { <-let; return 0 } // between two rounds
		})
		s.after(5 * time.Second)
		time.AfterFunc(time.Second, func() { close(let) })
		for _, got := range r.fills(context.Background(), 8) {
			require.Equal(t, filled{true, time.Second}, got)
		}
		require.EqualValues(t, 2, source.asked.Load())
	})
}

func TestAnAnswerOfTheSourceThatWasNotSeenIsNotWaitedForAgain(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		source := &slow{}
		r := s.refreshes(t, source.list)
		seen := r.Answers()
		s.after(0)
		require.True(t, r.Fill(context.Background(), seen), "it came since")
		require.False(t, r.Fill(context.Background(), r.Answers()), "a moment ago")
		seen = r.Answers()
		require.NoError(t, r.Now(context.Background(), r.cfg.Replace))
		require.True(t, r.Fill(context.Background(), seen), "whoever asked for it")
		source.fails, seen = errMine, r.Answers()
		require.ErrorIs(t, r.Now(context.Background(), r.cfg.Replace), errMine)
		require.False(t, r.Fill(context.Background(), seen), "an error fills no pool")
		require.EqualValues(t, 3, source.asked.Load())
	})
}

func TestWhoWaitsForTheSourceLeavesWithItsContextOrWithTheRefresher(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		source := &slow{takes: time.Hour}
		r := s.refreshes(t, source.list)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.Equal(t, []filled{{false, time.Second}}, r.fills(ctx, 1))
		time.AfterFunc(time.Second, r.End)
		require.Equal(t, []filled{{true, time.Second}}, r.fills(context.Background(), 1))
	})
}

func TestATurnThatCannotBeAskedForIsNotWaitedForAgain(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		s.fail(func(string) error { return errMine })
		r := s.refreshes(t, (&slow{}).list)
		s.after(5 * time.Second)
		require.Equal(t, []filled{{true, 0}}, r.fills(context.Background(), 1))
		require.Equal(t, []filled{{false, 0}}, r.fills(context.Background(), 1))
		require.Equal(t, seconds(0, 5), s.asked)
	})
}
