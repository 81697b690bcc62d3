package refresh

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAKickAsksSoonButNotMoreThanOnceASecond(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		r := s.refreshes(t, returns("a"))
		after(5 * time.Second)
		require.Equal(t, seconds(0), s.seen().asked)
		r.Kick()
		synctest.Wait()
		require.Equal(t, seconds(0, 5), s.seen().asked, "at once: the last one was long ago")
		for range 500 {
			r.Kick()
			after(10 * time.Millisecond)
		}
		require.Equal(t, seconds(0, 5, 6, 7, 8, 9, 10), s.seen().asked)
		require.Len(t, s.seen().replaces, 1, "it was not this node's turn")
		after(2 * time.Second)
		require.LessOrEqual(t, len(s.seen().asked), 8, "the last kick may have one more")
		after(18 * time.Second)
		require.Len(t, s.seen().replaces, 2, "kicks have not moved the next refresh")

		s.postpone(0) // as a flush does
		r.Kick()
		after(time.Second)
		require.Len(t, s.seen().replaces, 3)
	})
}

func TestAKickDuringARoundIsServedAfterItAndThoseBeforeOneByIt(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		let := make(chan struct{})
		r := s.refreshes(t, func(context.Context) ([]string, error) { <-let; return []string{"a"}, nil })
		synctest.Wait()
		r.Kick()
		r.Kick() // never blocks
		after(100 * time.Millisecond)
		close(let)
		after(time.Second)
		require.Equal(t, seconds(0, 1), s.seen().asked)
		for range 3 { // and all before a round by it
			after(100 * time.Millisecond)
			r.Kick()
		}
		after(10 * time.Second)
		require.Equal(t, seconds(0, 1, 2), s.seen().asked)
	})
}

func TestAShortEveryIsKept(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		s.refreshes(t, returns("a"), func(cfg *Config) { cfg.Every = 100 * time.Millisecond })
		after(time.Second)
		require.Len(t, s.seen().replaces, 11)
	})
}

// left may be nothing where the turn came up just now.
func TestATurnThatIsAlwaysSomebodyElsesIsNoBusyLoop(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		r := s.refreshes(t, returns("a"), func(cfg *Config) { cfg.Turn = never(s) })
		after(10*time.Second + time.Millisecond)
		require.Len(t, s.seen().asked, 11)
		require.Empty(t, r.told())
	})
}

// never is a turn that is never this node's, and always about to be.
func never(s *turns) func(context.Context, time.Duration) (bool, time.Duration, error) {
	return func(ctx context.Context, d time.Duration) (bool, time.Duration, error) {
		_, _, err := s.turn(ctx, d)
		return false, 0, err
	}
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
		synctest.Wait()
		require.Empty(t, s.seen().looks)
		r.mu.Lock()
		for n := range 450 {
			r.idles = append(r.idles, fmt.Sprint("idle ", n))
		}
		r.mu.Unlock()
		s.leave("idle 0", "idle 449", "in use")
		r.Kick() // without a Source there is nothing to ask for
		after(every - time.Millisecond)
		require.Empty(t, s.seen().looks)
		after(time.Millisecond)
		require.Len(t, s.seen().looks, 3)
		require.Len(t, s.seen().looks[0], 200)
		require.Len(t, s.seen().looks[2], 50)
		require.Equal(t, []string{"idle 0", "idle 449"}, r.dropped())
		require.Empty(t, s.seen().asked)

		s.fail(func(string) error { return errMine })
		s.leave("idle 1")
		after(every)
		require.Len(t, r.dropped(), 2)
		require.Empty(t, r.told())
		s.fail(nil)
		after(every)
		require.Equal(t, []string{"idle 0", "idle 449", "idle 1"}, r.dropped())
	})
}

func TestValuesAreLookedUpAfterAReplaceAndNotWithEveryKick(t *testing.T) {
	inTurns(t, func(t *testing.T, s *turns) {
		r := s.refreshes(t, returns("a"), func(cfg *Config) {
			cfg.Idle = func() []string { return []string{"idle"} }
		})
		synctest.Wait()
		require.Len(t, s.seen().looks, 1, "after the first answer")
		for range 10 {
			after(time.Second)
			r.Kick()
		}
		synctest.Wait()
		require.Len(t, s.seen().asked, 11)
		require.Len(t, s.seen().looks, 1)
		s.postpone(0)
		r.Kick()
		after(time.Second)
		require.Len(t, s.seen().looks, 2, "after the second answer")
		s.postpone(time.Hour)
		after(every)
		require.Len(t, s.seen().looks, 3, "and where others ask Source")
	})
}
