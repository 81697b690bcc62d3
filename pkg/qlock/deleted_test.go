package qlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
)

// The line is deleted by hand, or evicted, and the state stays. The owner has two
// entries.
func TestALineOfALockThatIsDeletedStandsAgain(t *testing.T) {
	for name, die := range map[string]bool{"its holder lives": false, "its holder is dead": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx := context.Background()
				a, b := w.node(), w.node()
				l := a.takeFor("me", nil)
				inner := a.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
				first, second := b.queue(nil), b.queue(nil)
				w.Until(500 * ms)
				if die {
					a.Die()
				}
				w.Do("DEL", lineKey)
				w.Until(lease/3 + 10*ms)
				require.False(t, first.Pending())
				require.NoError(t, first.Err)
				if !die {
					require.ErrorIs(t, l.Err(), berth.ErrLost)
					require.ErrorIs(t, inner.Err(), berth.ErrLost)
				}
				require.Equal(t, []int64{1, 1}, []int64{w.Field("used"), w.Field("waiting")})
				require.Positive(t, w.Expiry())
				require.NoError(t, first.Got.Release(ctx))
				require.NoError(t, second.Granted(w.Now()).Release(ctx))
				require.Zero(t, w.Field("used"))
				require.Zero(t, w.Field("waiting"))
				if !die {
					w.RequireIdle()
				}
			})
		})
	}
}

func TestCountsOfALockThatAreNotOursAreAnErrorAndAreLeftAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b := w.node(), w.node()
		l := a.take(nil)
		q := b.queue(nil)
		before, err := w.Do("HGET", stateKey, "v").ToString()
		require.NoError(t, err)
		w.Do("HSET", stateKey, "v", "rubbish")
		dump := w.Dump()
		_, err = b.TryLock(ctx, door, nil)
		require.ErrorContains(t, err, "is not Berth's")
		require.NotErrorIs(t, err, berth.ErrBusy)
		_, err = b.look(ctx, door)
		require.ErrorContains(t, err, "is not Berth's")
		require.ErrorContains(t, l.Renew(ctx), "is not Berth's")
		<-q.Done
		require.ErrorContains(t, q.Err, "is not Berth's")
		require.LessOrEqual(t, q.At, lease/3)
		require.Equal(t, dump, w.Dump())
		w.Do("HSET", stateKey, "v", before)
		require.NoError(t, l.Release(ctx))
	})
}
