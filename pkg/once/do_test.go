package once_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
)

func TestAPeriodIsDoneOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		w.Advance(20 * time.Minute)
		r := a.ran(hourly, nil)
		start := w.Began
		require.Equal(t, once.Period{Start: start.UTC(), End: start.Add(hour).UTC()}, r.Period)
		require.Equal(t, once.Succeeded, r.Outcome)
		require.Equal(t, 1, r.Attempt)
		require.Equal(t, ms, r.Took())

		seen := b.finds(hourly, once.Done)
		require.Equal(t, r.Info, seen.Info, "who has done it, and when")
		require.Equal(t, a.ID(), seen.Node)
		require.Equal(t, 1, b.Count("HMGET"), "one read")
		require.Zero(t, b.Count("thin_acquire"))

		w.Until(hour - ms)
		b.finds(hourly, once.Done)
		w.Until(hour)
		next := b.ran(hourly, nil)
		require.Greater(t, next.Fence, r.Fence)
		require.Zero(t, next.Missed)
	})
}

// A caller with another offset, such as berth run --once by its default, has periods that reach into those
// of the others.
func TestAnotherOffsetRunsNothingTwice(t *testing.T) {
	late := once.Config{Every: hour, Offset: hour / 3}
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		run := a.start(t.Context(), hourly, takes(40*time.Minute, nil))
		w.Until(35 * time.Minute)
		wait := b.start(t.Context(), waiting(late), never(t)) // the server tells it under the lock
		require.NoError(t, run.Granted(40*time.Minute).err)
		require.Equal(t, once.Done, wait.GrantedBy(40*time.Minute).Status)
		require.Equal(t, "2026-01-01T00:00:00Z", b.finds(late, once.Done).Period.String())
		w.Until(hour + hour/3)
		require.Equal(t, "2026-01-01T01:20:00Z", b.ran(late, nil).Period.String())
		require.Equal(t, "2026-01-01T01:20:00Z", a.finds(hourly, once.Done).Period.String())
	})
}

func TestWhatFailedIsTakenByAnotherWhileAttemptsAreLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		require.Equal(t, 1, a.ran(hourly, errMine).Attempt)
		require.Equal(t, 2, b.ran(hourly, errMine).Attempt)
		require.Equal(t, 3, a.ran(hourly, errMine).Attempt)
		r, err := b.fails(hourly, once.ErrUsedUp)
		require.ErrorContains(t, err, `3 of 3 for 2026-01-01T00:00:00Z of "digest": my own reason`)
		require.Empty(t, r.Status)
		require.Equal(t, a.ID(), r.Node, "whose run was the last")
		more := hourly
		more.Attempts = 4
		require.Equal(t, 4, b.ran(more, nil).Attempt, "each call goes by its own settings")

		w.Until(hour)
		require.Equal(t, 1, b.ran(hourly, nil).Attempt)

		w.Until(2 * hour)
		require.PanicsWithValue(t, "no paper", func() {
			_, _ = a.job(hourly).Do(t.Context(), func(context.Context, *once.Run) error { panic("no paper") })
		})
		require.Equal(t, once.Failed, b.last().Run.Outcome, "a panic is a failure")
		require.Contains(t, b.last().Run.Error, "panicked")
		require.Equal(t, 2, b.ran(hourly, nil).Attempt)
	})
}

func TestAfterAFailureNobodyBeginsUntilItsRetryAfterIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  once.Config
		rest time.Duration
	}{
		"what it says": {once.Config{Every: hour, RetryAfter: 7 * time.Minute}, 7 * time.Minute},
		// By default, where the call waits, a tenth of a period, at most a minute.
		"a minute": {waiting(hourly), time.Minute},
		"a tenth":  {waiting(once.Config{Every: 5 * time.Minute}), 30 * time.Second},
	} {
		inWorldOf(t, name, func(t *testing.T, w *world) {
			a, b, next := w.node(), w.node(), once.Config{Every: c.cfg.Every}
			a.ran(c.cfg, errMine)
			failed := w.Now()
			require.Equal(t, "my own reason", b.finds(next, once.HasFailed).Error)
			wait := b.start(t.Context(), waiting(next), takes(0, nil))
			w.Until(failed + c.rest - ms)
			require.True(t, wait.Pending())
			r := wait.Granted(failed + c.rest)
			require.NoError(t, r.err)
			require.Equal(t, once.Ran, r.Status)
			require.Equal(t, 2, r.Attempt)
		})
	}
}

func TestWhatItsOwnProcessStopsCountsAsNoAttempt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		single := once.Config{Every: hour, Attempts: 1, RetryAfter: time.Minute}
		heeds := func(ctx context.Context, _ *once.Run) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		for range 3 {
			call := n.start(t.Context(), single, heeds)
			call.Cancel(errMine)
			r := call.Granted(w.Now())
			require.ErrorIs(t, r.err, errMine)
			require.Equal(t, once.Stopped, r.Outcome)
			require.Equal(t, 1, r.Attempt)
		}
		stopped := n.Told(observe.RunStopped)
		require.Len(t, stopped, 3)
		require.ErrorIs(t, stopped[0].Err, errMine)
		require.Empty(t, n.Told(observe.RunFailed))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, err := n.job(single).Do(ctx, heeds)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, once.Failed, r.Outcome, "it took too long")
		require.Len(t, n.Told(observe.RunFailed), 1)
		_, _ = n.fails(single, once.ErrUsedUp)
	})
}

// The lock is held for something else: the last run is not at it, and is not said to go on.
func TestWhoComesLateDoesNotRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		period := n.ran(hourly, errMine).Period
		lock, err := w.locks().Lock(t.Context(), digest, nil)
		require.NoError(t, err)
		require.Equal(t, once.Info{Period: period}, n.finds(hourly, once.Running).Info)
		wait := n.start(t.Context(), waiting(once.Config{Every: time.Minute}), never(t))
		r := wait.GrantedBy(time.Minute)
		require.ErrorIs(t, r.err, once.ErrLate)
		require.ErrorIs(t, r.err, berth.ErrNotAcquired)
		require.Equal(t, "2026-01-01T00:00:00Z", r.Period.String())
		require.NoError(t, lock.Release(t.Context()))
	})
}

func TestAPeriodThatEndsBeforeTheRunCanBeginIsLate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.OnCommand(slow("once_begin", time.Second))
		w.Until(hour - ms)
		r, _ := n.fails(hourly, once.ErrLate)
		require.Empty(t, r.Status)
		require.Nil(t, n.last().Run)
		w.RequireIdle()
	})
}

// Two processes name one owner: it lets neither in to the other's run.
func TestARunInItsOwnRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		owner := berth.WithOwner(t.Context(), "shared")
		r, err := n.job(hourly).Do(owner, func(ctx context.Context, run *once.Run) error {
			require.Equal(t, run.Fence(), n.job(hourly).Fence(ctx))
			seen, err := n.job(hourly).Do(ctx, never(t))
			require.NoError(t, err)
			require.Equal(t, once.Running, seen.Status)
			seen, err = other.job(hourly).Do(owner, never(t))
			require.NoError(t, err)
			require.Equal(t, once.Running, seen.Status)
			_, err = n.job(waiting(hourly)).Do(ctx, never(t))
			require.ErrorIs(t, err, berth.ErrDeadlock)
			_, err = n.named("another", hourly).Do(ctx, takes(ms, nil))
			return err
		})
		require.NoError(t, err)
		require.Equal(t, once.Ran, r.Status)
		require.Zero(t, n.job(hourly).Fence(t.Context()))
	})
}

func TestOtherSettingsBesideTheOldOnes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		short := once.Config{Every: 20 * time.Minute}
		w.Advance(30 * time.Minute)
		n.ran(short, nil) // of 00:20
		n.finds(hourly, once.Done)
		n.finds(short, once.Done)
		w.Until(45 * time.Minute)
		n.ran(short, errMine) // of 00:40
		n.finds(hourly, once.Done)
		w.Until(hour)
		n.ran(short, errMine)                              // of 01:00
		_, _ = n.fails(once.Config{Every: 24 * hour}, nil) // a later period was done
		w.Until(2 * hour)
		r := n.ran(hourly, nil)
		require.Equal(t, 1, r.Attempt)
	})
}

// One process runs the name each second, another one means to run it each hour, a third half an hour later.
func TestACallWhosePeriodOtherSettingsHaveDoneTellsIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b, c := w.node(), w.node(), w.node()
		w.Advance(30 * time.Minute)
		a.ran(once.Config{Every: time.Second}, nil)
		for range 3 {
			b.finds(hourly, once.Done)
		}
		w.Until(hour)
		a.ran(once.Config{Every: time.Second}, nil)
		b.finds(hourly, once.Done)
		told := b.Told(observe.SettingsDiffer)
		require.Len(t, told, 2, "once in a period")
		require.Equal(t, "once", told[0].Primitive)
		require.Equal(t, digest, told[0].Name)
		require.Equal(t, "Every 1h0m0s, stored 1s", told[0].Detail)
		w.Until(2 * hour)
		b.ran(hourly, nil)
		b.finds(hourly, once.Done)
		c.finds(once.Config{Every: hour, Offset: hour / 2}, once.Done)
		require.Len(t, b.Told(observe.SettingsDiffer), 2)
		require.Empty(t, a.Told(observe.SettingsDiffer))
		told = c.Told(observe.SettingsDiffer)
		require.Len(t, told, 1)
		require.Equal(t, "Offset 30m0s, stored 0s", told[0].Detail)
	})
}

// A later period of other settings has begun, and none is done.
func TestAPeriodIsLateWhereALaterOneHasBegun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.Advance(45 * time.Minute)
		n.ran(once.Config{Every: 20 * time.Minute}, errMine)
		before := w.kept()
		_, _ = n.fails(hourly, once.ErrLate)
		require.Equal(t, before, w.kept())
	})
}
