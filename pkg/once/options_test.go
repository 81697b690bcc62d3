package once_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
)

func TestWhatConfigsAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		field string
		cfg   once.Config
	}{
		{"Every", once.Config{}},
		{"Every", once.Config{Every: -hour}},
		{"Every", once.Config{Every: 19 * ms}},
		{"Every", once.Config{Every: hour + time.Microsecond}},
		{"Every", once.Config{Every: 8784*hour + ms}},
		{"Every", once.Config{Every: berth.Forever}},
		{"Offset", once.Config{Every: hour, Offset: -ms}},
		{"Offset", once.Config{Every: hour, Offset: hour}},
		{"Offset", once.Config{Every: hour, Offset: time.Microsecond}},
		{"Attempts", once.Config{Every: hour, Attempts: -1}},
		{"Attempts", once.Config{Every: hour, Attempts: 1_000_001}},
		{"RetryAfter", once.Config{Every: hour, RetryAfter: -ms}},
		{"RetryAfter", once.Config{Every: hour, RetryAfter: time.Microsecond}},
		{"RetryAfter", once.Config{Every: hour, RetryAfter: 8784*hour + ms}},
		{"RetryAfter", once.Config{Every: hour, RetryAfter: berth.Forever}},
		{"Lease", once.Config{Every: hour, Lease: 19 * ms}},
		{"Lease", once.Config{Every: hour, Lease: berth.Forever}},
		{"MaxHold", once.Config{Every: hour, MaxHold: ms}},
		{"Priority", once.Config{Every: hour, Priority: 128}},
		{"WantAfter", once.Config{Every: hour, WantAfter: ms}},
		{"Meta", once.Config{Every: hour, Meta: map[string]string{"a": strings.Repeat("b", 16<<10)}}},
	} {
		err := test.cfg.Validate()
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
		var refused *berth.ConfigError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, test.field, refused.Field, "%+v", test.cfg)
	}
	require.NoError(t, once.Config{Every: 8784 * hour, Offset: 8784*hour - ms, Attempts: 1_000_000}.Validate())
	require.NoError(t, once.Config{Every: 20 * ms}.Validate())
}

// A tenth of a period, at most a minute.
func TestAFailureOfACallThatWaitsRestsByDefault(t *testing.T) {
	for every, rest := range map[time.Duration]time.Duration{hour: time.Minute, 5 * time.Minute: 30 * time.Second} {
		inWorldOf(t, every.String(), func(t *testing.T, w *world) {
			a, b, cfg := w.node(), w.node(), once.Config{Every: every}
			a.ran(waiting(cfg), errMine)
			failed := w.Now()
			b.finds(cfg, once.Resting)
			wait := b.start(t.Context(), waiting(cfg), takes(0, nil))
			require.Equal(t, once.Ran, wait.Granted(failed+rest).Status)
		})
	}
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
				var refused *berth.ConfigError
				require.ErrorAs(t, err, &refused, call)
				require.Equal(t, field, refused.Field, call)
			}
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

func TestANilFunctionIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.Fresh()
		_, err := n.job(hourly).Do(t.Context(), nil)
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
		require.ErrorIs(t, n.job(hourly).Run(t.Context(), nil), berth.ErrInvalidConfig)
		require.Empty(t, n.Counts())
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
		var refused *berth.ConfigError
		require.ErrorAs(t, cfg.Validate(), &refused)
		require.Equal(t, field, refused.Field)
	}
	require.Error(t, once.Around(-hour, 0).Validate())
	require.Error(t, once.Around(time.Microsecond, 0).Validate())
	require.NoError(t, once.Around(8784*hour, -8784*hour).Validate())
}

func TestTheLockOfARunHasTheOptionsOfTheJob(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		lasts := once.Config{Every: hour, Lease: 3 * lease, MaxHold: 10 * time.Minute, Meta: map[string]string{"a": "b"}, Attrs: map[string]any{"c": 1}}
		run, _, err := a.job(lasts).Begin(t.Context())
		require.NoError(t, err)
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
