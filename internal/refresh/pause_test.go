package refresh

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAKickAsksSoonButNotMoreThanOnceASecond(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		r := s.refreshes(t, returns("a"))
		s.after(5 * time.Second)
		require.Equal(t, seconds(0), s.asked)
		r.Kick()
		s.after(0)
		require.Equal(t, seconds(0, 5), s.asked, "at once: the last one was long ago")
		for range 500 {
			r.Kick()
			s.after(10 * time.Millisecond)
		}
		require.Equal(t, seconds(0, 5, 6, 7, 8, 9, 10), s.asked)
		require.Len(t, s.replaces, 1, "it was not this node's turn")
		s.after(2 * time.Second)
		require.LessOrEqual(t, len(s.asked), 8, "the last kick may have one more")
		s.after(18 * time.Second)
		require.Len(t, s.replaces, 2, "kicks have not moved the next refresh")

		s.postpone(0) // as a flush does
		r.Kick()
		s.after(time.Second)
		require.Len(t, s.replaces, 3)
	})
}

func TestAKickDuringARoundIsServedAfterItAndThoseBeforeOneByIt(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		let := make(chan struct{})
		r := s.refreshes(t, func(context.Context) ([]string, error) { <-let; return []string{"a"}, nil })
		s.after(0)
		r.Kick()
		r.Kick() // never blocks
		s.after(100 * time.Millisecond)
		close(let)
		s.after(time.Second)
		require.Equal(t, seconds(0, 1), s.asked)
		for range 3 { // and all before a round by it
			s.after(100 * time.Millisecond)
			r.Kick()
		}
		s.after(10 * time.Second)
		require.Equal(t, seconds(0, 1, 2), s.asked)
	})
}

func TestAShortEveryIsKept(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		s.refreshes(t, returns("a"), func(cfg *Config) { cfg.Every = 100 * time.Millisecond })
		s.after(time.Second)
		require.Len(t, s.replaces, 11)
	})
}

// left may be nothing where the turn came up just now.
func TestATurnThatIsAlwaysSomebodyElsesIsNoBusyLoop(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		r := s.refreshes(t, returns("a"), func(cfg *Config) {
			cfg.Turn = func(ctx context.Context, d time.Duration) (bool, time.Duration, error) {
				_, _, err := s.turn(ctx, d)
				return false, 0, err
			}
		})
		s.after(10*time.Second + time.Millisecond)
		require.Len(t, s.asked, 11)
		require.Empty(t, r.told)
	})
}

func TestThePausesOfManyNodesDifferALittle(t *testing.T) {
	t.Parallel()
	different := make(map[time.Duration]bool)
	for range 100 {
		more := jitter(every)
		require.GreaterOrEqual(t, more, time.Duration(0))
		require.LessOrEqual(t, more, every/20)
		different[more] = true
	}
	require.Greater(t, len(different), 50)
	require.Zero(t, jitter(0))
	require.LessOrEqual(t, jitter(longestPause), longestPause/20)
}

func TestValuesOfWhatHasLeftThePoolAreDropped(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		r := s.refreshes(t, nil)
		require.Equal(t, []filled{{false, 0}}, r.fills(t.Context(), 1), "without a Source nobody waits for it")
		s.after(0)
		require.Empty(t, s.looks)
		s.set(func() {
			for n := range 450 {
				r.idles = append(r.idles, fmt.Sprint("idle ", n))
			}
			s.gone = []string{"idle 0", "idle 449", "in use"}
		})
		r.Kick() // without a Source there is nothing to ask for
		s.after(every - time.Millisecond)
		require.Empty(t, s.looks)
		s.after(time.Millisecond)
		require.Len(t, s.looks, 3)
		require.Len(t, s.looks[0], 200)
		require.Len(t, s.looks[2], 50)
		require.Equal(t, []string{"idle 0", "idle 449"}, r.dropped)
		require.Empty(t, s.asked)

		s.fail(func(string) error { return errMine })
		s.set(func() { s.gone = append(s.gone, "idle 1") })
		s.after(every)
		require.Len(t, r.dropped, 2)
		require.Empty(t, r.told)
		s.fail(nil)
		s.after(every)
		require.Equal(t, []string{"idle 0", "idle 449", "idle 1"}, r.dropped)
	})
}

func TestValuesAreLookedUpAfterAReplaceAndNotWithEveryKick(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		r := s.refreshes(t, returns("a"), func(cfg *Config) {
			cfg.Idle = func() []string { return []string{"idle"} }
		})
		s.after(0)
		require.Len(t, s.looks, 1, "after the first answer")
		for range 10 {
			s.after(time.Second)
			r.Kick()
		}
		s.after(0)
		require.Len(t, s.asked, 11)
		require.Len(t, s.looks, 1)
		s.postpone(0)
		r.Kick()
		s.after(time.Second)
		require.Len(t, s.looks, 2, "after the second answer")
		s.postpone(time.Hour)
		s.after(every)
		require.Len(t, s.looks, 3, "and where others ask Source")
	})
}
