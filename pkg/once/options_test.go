package once_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
)

func TestWhatConfigsAreRefused(t *testing.T) {
	t.Parallel()
	for field, all := range map[string][]once.Config{
		"Every": {
			{},
			{Every: -hour},
			{Every: 19 * ms},
			{Every: hour + time.Microsecond},
			{Every: 8784*hour + ms},
			{Every: berth.Forever},
		},
		"Offset":   {{Every: hour, Offset: -ms}, {Every: hour, Offset: hour}, {Every: hour, Offset: time.Microsecond}},
		"Attempts": {{Every: hour, Attempts: -1}, {Every: hour, Attempts: 1_000_001}},
		"RetryAfter": {
			{Every: hour, RetryAfter: -ms},
			{Every: hour, RetryAfter: time.Microsecond},
			{Every: hour, RetryAfter: 8784*hour + ms},
			{Every: hour, RetryAfter: berth.Forever},
		},
		"Lease":     {{Every: hour, Lease: 19 * ms}, {Every: hour, Lease: berth.Forever}},
		"MaxHold":   {{Every: hour, MaxHold: ms}},
		"Priority":  {{Every: hour, Priority: 128}},
		"WantAfter": {{Every: hour, WantAfter: ms}},
		"Meta":      {{Every: hour, Meta: map[string]string{"a": strings.Repeat("b", 16<<10)}}},
	} {
		for _, cfg := range all {
			err := cfg.Validate()
			require.ErrorIs(t, err, berth.ErrInvalidConfig)
			requireField(t, field, err, cfg)
		}
	}
	require.NoError(t, once.Config{Every: 8784 * hour, Offset: 8784*hour - ms, Attempts: 1_000_000}.Validate())
	require.NoError(t, once.Config{Every: 20 * ms}.Validate())
}

// requireField fails unless an error is about a field.
func requireField(t *testing.T, field string, err error, of any) {
	t.Helper()
	refused, ok := errors.AsType[*berth.ConfigError](err)
	require.True(t, ok, "%v: %v", of, err)
	require.Equal(t, field, refused.Field, "%+v", of)
}

func TestEachCallOfAJobThatCannotBeUsedSaysWhy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for field, test := range map[string]struct {
			name string
			cfg  once.Config
		}{
			"Every": {digest, once.Config{}},
			"Lease": {digest, once.Config{Every: hour, Lease: berth.Forever}},
			"name":  {"a{b", hourly},
			"node":  {digest, hourly},
		} {
			n := w.node()
			n.Fresh()
			job := once.New(n.Node, test.name, test.cfg)
			if field == "node" {
				job = once.New(nil, test.name, test.cfg)
			}
			_, done := job.Do(t.Context(), never(t))
			run, _, begun := job.Begin(t.Context())
			_, looked := job.Last(t.Context())
			_, checked := n.Check(t.Context())
			for call, err := range map[string]error{
				"Do": done, "Begin": begun, "Last": looked, "Check": checked, "Run": job.Run(t.Context(), never(t)),
			} {
				if call == "Check" && (field == "node" || field == "name") {
					continue // it is another node, and a name may be a stranger's
				}
				requireField(t, field, err, call)
			}
			require.ErrorIs(t, n.job(hourly).Run(t.Context(), nil), berth.ErrInvalidConfig, "nor without a function")
			require.ErrorIs(t, testkit.Second(n.job(hourly).Do(t.Context(), nil)), berth.ErrInvalidConfig)
			require.Nil(t, run)
			require.Zero(t, job.Fence(t.Context()))
			require.NoError(t, job.Close(t.Context()))
			if field != "node" && field != "name" {
				require.Empty(t, n.Counts(), "nothing is sent")
			}
			require.Equal(t, test.name, job.Name())
		}
	})
}

func TestAFiringStandsInTheMiddleOfItsPeriod(t *testing.T) {
	t.Parallel()
	const day = 24 * hour
	for _, test := range []struct{ every, at, offset time.Duration }{
		{hour, 0, 30 * time.Minute},
		{day, 0, 12 * hour},
		{day, 12 * hour, 0},
		{day, 23 * hour, 11 * hour},
		{day, -hour, 11 * hour},
		{day, 50 * hour, 14 * hour},
		{21 * ms, 0, 10 * ms},
	} {
		cfg := once.Around(test.every, test.at)
		require.NoError(t, cfg.Validate())
		require.Equal(t, once.Config{Every: test.every, Offset: test.offset}, cfg)
	}
	for field, cfg := range map[string]once.Config{
		"Every": once.Around(0, hour), "Offset": once.Around(hour, time.Microsecond),
	} {
		requireField(t, field, cfg.Validate(), cfg)
	}
	require.Error(t, once.Around(-hour, 0).Validate())
	require.Error(t, once.Around(time.Microsecond, 0).Validate())
	require.NoError(t, once.Around(8784*hour, -8784*hour).Validate())
}

func TestTheLockOfARunHasTheOptionsOfTheJob(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		lasts := once.Config{Every: hour, Lease: 3 * lease, MaxHold: 10 * time.Minute, Meta: map[string]string{"a": "b"}, Attrs: map[string]any{"c": 1}}
		run, _ := a.begins(lasts)
		defer func() { _ = run.End(context.Background(), nil) }()
		require.Equal(t, map[string]any{"c": 1}, a.Told(observe.Granted)[0].Attrs)
		wait := b.start(t.Context(), once.Config{Every: hour, Wait: true, Priority: 3, WantAfter: time.Minute}, takes(0, nil))
		require.Equal(t, 3, w.Waiters()[0].Priority)
		w.Until(time.Minute - ms)
		held := w.Holders()[0]
		require.Equal(t, 3*lease, held.Lease)
		require.Equal(t, map[string]string{"a": "b"}, held.Meta)
		require.Empty(t, a.Told(observe.Wanted))
		w.Until(time.Minute + 2*lease)
		require.NotEmpty(t, a.Told(observe.Wanted))
		require.True(t, wait.Pending())
		require.Equal(t, once.Ran, wait.GrantedBy(10*time.Minute).Status)
		require.ErrorIs(t, run.End(t.Context(), errMine), berth.ErrExpired)
	})
}

func TestWhatIsKnownIsForgottenAtTheEndOfThePeriodAfterTheNext(t *testing.T) {
	const period, short = 6 * time.Minute, 2 * time.Minute
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		expires := func() time.Duration { return time.UnixMilli(w.Int("PEXPIRETIME", record)).Sub(w.Began) }
		w.Advance(time.Minute)
		n.ran(once.Config{Every: period}, nil)
		require.Equal(t, 3*period, expires())
		w.Until(3 * time.Minute)
		_, err := n.job(waiting(once.Config{Every: short})).Do(t.Context(), takes(3*period, nil))
		require.NoError(t, err)
		require.Equal(t, w.Now()+3*short, expires(), "a run that took longer, by its own settings")
		w.Until(5 * period)
		require.Equal(t, once.Last{}, n.last())
		require.Empty(t, slices.DeleteFunc(w.Keys(), func(key string) bool { return !strings.Contains(key, "once") }))

		n.ran(once.Config{Every: 24 * hour}, nil)
		at := expires()
		w.Until(2 * hour)
		n.ran(hourly, nil)
		require.Equal(t, at, expires(), "never earlier than it was to be")
	})
}

func TestLastSaysWhatBecameOfTheRuns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		require.Equal(t, once.Last{}, b.last())
		first := a.ran(hourly, nil)
		last := b.last()
		require.Equal(t, first.Info, *last.Success)
		require.Equal(t, last.Success, last.Run)
		w.Until(hour)
		call := a.start(t.Context(), hourly, takes(time.Minute, fmt.Errorf("\xff%s", strings.Repeat("é", 300))))
		last = b.last()
		require.Equal(t, once.Begun, last.Run.Outcome)
		require.Zero(t, last.Run.Took())
		require.Equal(t, first.Info, *last.Success)
		call.Granted(hour + time.Minute)
		last = b.last()
		require.Equal(t, once.Failed, last.Run.Outcome)
		require.Equal(t, strings.Repeat("é", 255), last.Run.Error, "neither what is no letter, nor half of one")
		require.Equal(t, time.Minute, last.Run.Took())
		require.Equal(t, w.Began.Add(hour).UTC(), last.Run.Begun)

		w.Until(2 * hour)
		for _, text := range []string{"", " ", "7:x", "a b\nc", "1 2 3 4 5 6 7 8 done x 3:"} {
			run, _ := a.begins(once.Config{Every: hour, Attempts: 100})
			require.NoError(t, run.End(t.Context(), fmt.Errorf("%s", text)))
			require.Equal(t, text, b.last().Run.Error, "it may be any bytes")
		}
	})
}

// Only who writes below the namespace beside Berth can change it while the caller holds the lock.
func TestACallEndsWhereTheLastRunChangesEachTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, asked := w.node(), 0
		w.Until(2 * hour)
		before := time.Now().UnixMilli() - hour.Milliseconds()
		n.OnCommand(on("once_begin", link.Pass, func() {
			if asked++; asked <= 100 {
				w.Do("HSET", record, "run", fmt.Sprintf("%d %d 1 1 1 1 0 0 failed n 1:ax", before-int64(asked), before))
			}
		}))
		run, _, err := n.job(hourly).Begin(t.Context())
		if run != nil {
			require.NoError(t, run.End(t.Context(), nil))
		}
		require.ErrorContains(t, err, `the last run of "digest" has changed 10 times under its lock`)
		require.Equal(t, 10, asked)
		n.OnCommand(nil)
		n.ran(hourly, nil) // the lock was given back
	})
}

// It comes while a call is on its way to the script, so that the look before does not see it.
func TestWhatANewerReleaseKeepsIsLeftAlone(t *testing.T) {
	for _, field := range []string{"fmt 2", "run damaged", "success damaged", "expires damaged"} {
		inWorldOf(t, field, func(t *testing.T, w *world) {
			n := w.node()
			var before map[string]string
			meets := func(script string) {
				n.OnCommand(on(script, link.Pass, func() {
					w.Do(append([]string{"HSET", record}, strings.Fields(field)...)...)
					before = w.kept()
				}))
			}
			n.ran(hourly, nil)
			w.Until(hour)
			run, _ := n.begins(hourly)
			old := w.kept()
			meets("once_end")
			requireLeft := func(err error) {
				want := state.ErrDamaged
				if field == "fmt 2" {
					want = berth.ErrIncompatible
				}
				require.ErrorIs(t, err, want)
				require.NotEmpty(t, before)
				require.Equal(t, before, w.kept())
			}
			requireLeft(run.End(t.Context(), nil))
			if field != "expires damaged" { // which only the scripts read
				requireLeft(testkit.Second(n.job(hourly).Last(t.Context())))
			}

			w.Do("HSET", record, "fmt", old["fmt"], "run", old["run"], "success", old["success"], "expires", old["expires"])
			w.Until(2 * hour)
			before = nil
			meets("once_begin")
			requireLeft(testkit.Second(n.job(hourly).Do(t.Context(), never(t))))
		})
	}
}

// The server's clock was put back since the run: its period lies ahead.
func TestWhatLiesFarAheadCountsAsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.ran(hourly, nil)
		ahead := func(by time.Duration) {
			start := w.Began.Add(by).UnixMilli()
			text := fmt.Sprintf("%d %d 1 1 %d %d 0 0 done n 0:", start, start+hour.Milliseconds(), start, start)
			w.Do("HSET", record, "run", text, "success", text, "expires", fmt.Sprint(start+1e12))
		}
		ahead(w.Now() + hour + time.Minute)
		n.finds(hourly, once.Done)
		ahead(w.Now() + hour + time.Minute + ms)
		r := n.ran(hourly, nil)
		require.Equal(t, 1, r.Attempt)
		require.Equal(t, r.Fence, n.last().Success.Fence)
		require.Equal(t, w.Began.Add(3*hour).UnixMilli(), w.Int("PEXPIRETIME", record))
		ahead(2 * hour)
		n.ran(hourly, errMine)
		require.Nil(t, n.last().Success)
	})
}

// What panics while the server's decision is read is here the observer, that hears of periods that went by.
func TestAPanicOnADecisionIsAnErrorAndLeavesNoLock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var first sync.Once
		n := w.node(node.Config{Observer: observe.Func(func(e observe.Event) {
			if e.Kind == observe.Missed {
				first.Do(func() { panic(guard.Meant("no such index")) })
			}
		})})
		n.ran(hourly, nil)
		w.Until(2 * hour)
		_, err := n.job(hourly).Do(context.Background(), func(context.Context, *once.Run) error { return nil })
		require.ErrorContains(t, err, "a decision panicked: no such index")
		require.Len(t, n.Told(observe.Panicked), 1)
		w.Until(3 * hour)
		n.ran(hourly, nil) // the lock is free
	})
}
