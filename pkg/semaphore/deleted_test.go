package semaphore_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/semaphore"
)

// The line is deleted by hand, or evicted, and the state stays.
func TestALineThatIsDeletedStandsAgain(t *testing.T) {
	for name, die := range map[string]bool{"its holder lives": false, "its holder is dead": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx := context.Background()
				a, b := w.node(), w.node()
				p := a.take(2, &semaphore.AcquireOptions{Weight: 2})
				first, second := b.queue(2, nil), b.queue(2, &semaphore.AcquireOptions{Weight: 2})
				third := b.queue(2, nil)
				w.Until(500 * ms)
				if die {
					a.Die()
				}
				w.Do("DEL", lineKey)
				w.Until(lease/3 + 10*ms)
				require.False(t, first.Pending())
				require.NoError(t, first.Err)
				if !die {
					require.ErrorIs(t, p.Err(), berth.ErrLost)
				}
				require.True(t, second.Pending())
				require.Equal(t, []int64{1, 2}, []int64{w.Field("used"), w.Field("waiting")})
				require.Positive(t, w.Expiry())
				require.NoError(t, first.Got.Release(ctx))
				held := second.Granted(w.Now())
				require.Equal(t, []int64{2, 1}, []int64{w.Field("used"), w.Field("waiting")})
				require.NoError(t, held.Release(ctx))
				require.NoError(t, third.Granted(w.Now()).Release(ctx))
				require.Zero(t, w.Field("used"))
				require.Zero(t, w.Field("waiting"))
				if !die {
					w.RequireIdle()
				}
			})
		})
	}
}

// What is held since, and what was held before, are told apart.
func TestCountsAreMadeAnewWhereALineWasDeleted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b := w.node(), w.node()
		lost := a.take(5, &semaphore.AcquireOptions{Weight: 2})
		endless := a.take(5, &semaphore.AcquireOptions{Lease: berth.Forever})
		_ = lost.Renew(ctx)
		require.EqualValues(t, 1, w.Field("forever"))
		w.Do("DEL", lineKey)
		held := b.take(5, &semaphore.AcquireOptions{Weight: 2})
		require.EqualValues(t, 2, w.Field("used"), "what was in the line counts no more")
		q := b.queue(5, &semaphore.AcquireOptions{Weight: 3})
		w.Until(lease/3 + 10*ms)
		require.ErrorIs(t, lost.Err(), berth.ErrLost)
		require.ErrorIs(t, endless.Err(), berth.ErrLost)
		require.NoError(t, held.Err())
		require.NoError(t, q.Err)
		require.False(t, q.Pending())
		require.Equal(t, []int64{5, 0, 0}, []int64{w.Field("used"), w.Field("waiting"), w.Field("forever")})
		require.NoError(t, held.Release(ctx))
		require.NoError(t, q.Got.Release(ctx))
		w.RequireIdle()
	})
}

// Its own release finds the claim without an entry in the line.
func TestAReleaseOfAPermitWhoseLineWasDeletedSaysThatItWasLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		q := b.queue(1, nil)
		w.Do("DEL", lineKey)
		require.ErrorIs(t, p.Release(ctx), berth.ErrLost)
		require.Zero(t, w.Field("used"))
		w.Until(lease/3 + 10*ms)
		require.False(t, q.Pending())
		require.NoError(t, q.Err)
	})
}

// It stalls nobody without a word, as a key of another type does not.
func TestCountsThatAreNotOursAreAnErrorAndAreLeftAlone(t *testing.T) {
	for name, change := range map[string]func(values string) string{
		"rubbish":     func(string) string { return "rubbish" },
		"nothing":     func(string) string { return "" },
		"a few words": func(string) string { return "2 1 1" },
		"a letter":    func(values string) string { return values[:20] + "x" + values[21:] },
		"a word more": func(values string) string { return values + " 0" },
		"a word less": func(values string) string { return values[:len(values)-2] },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx := context.Background()
				a, b := w.node(), w.node()
				p := a.take(1, nil)
				q := b.queue(1, nil)
				before, err := w.Do("HGET", stateKey, "v").ToString()
				require.NoError(t, err)
				w.Do("HSET", stateKey, "v", change(before))
				dump := w.Dump()
				_, err = b.gpu(1).TryAcquire(ctx, nil)
				require.ErrorContains(t, err, "is not Berth's")
				require.NotErrorIs(t, err, berth.ErrBusy)
				require.NotErrorIs(t, err, berth.ErrIncompatible)
				_, err = w.Look()
				require.ErrorContains(t, err, "is not Berth's")
				require.ErrorContains(t, p.Renew(ctx), "is not Berth's")
				<-q.Done
				require.ErrorContains(t, q.Err, "is not Berth's")
				var refusal *berth.AcquireError
				require.ErrorAs(t, q.Err, &refusal)
				require.Equal(t, berth.ReasonFailed, refusal.Reason)
				require.LessOrEqual(t, q.At, lease/3)
				require.Equal(t, dump, w.Dump())
				w.Do("HSET", stateKey, "v", before)
				require.NoError(t, p.Release(ctx))
			})
		})
	}
}
