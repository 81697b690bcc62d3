package once_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestWhatOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		field string
		opts  once.Options
	}{
		{"Every", once.Options{}},
		{"Every", once.Options{Every: -hour}},
		{"Every", once.Options{Every: 19 * ms}},
		{"Every", once.Options{Every: hour + time.Microsecond}},
		{"Every", once.Options{Every: 8784*hour + ms}},
		{"Every", once.Options{Every: berth.Forever}},
		{"Offset", once.Options{Every: hour, Offset: -ms}},
		{"Offset", once.Options{Every: hour, Offset: hour}},
		{"Offset", once.Options{Every: hour, Offset: time.Microsecond}},
		{"Attempts", once.Options{Every: hour, Attempts: -1}},
		{"Attempts", once.Options{Every: hour, Attempts: 1_000_001}},
		{"RetryAfter", once.Options{Every: hour, RetryAfter: -ms}},
		{"RetryAfter", once.Options{Every: hour, RetryAfter: time.Microsecond}},
		{"RetryAfter", once.Options{Every: hour, RetryAfter: 8784*hour + ms}},
		{"RetryAfter", once.Options{Every: hour, RetryAfter: berth.Forever}},
	} {
		err := test.opts.Validate()
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
		var refused *berth.ConfigError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, test.field, refused.Field, "%+v", test.opts)
	}
	require.NoError(t, once.Options{Every: 8784 * hour, Offset: 8784*hour - ms, Attempts: 1_000_000}.Validate())
	require.NoError(t, once.Options{Every: 20 * ms}.Validate())
}

// A tenth of a period, at most a minute.
func TestAFailureOfACallThatWaitsRestsByDefault(t *testing.T) {
	for every, rest := range map[time.Duration]time.Duration{hour: time.Minute, 5 * time.Minute: 30 * time.Second} {
		inWorldOf(t, every.String(), func(t *testing.T, w *world) {
			a, b, opts := w.node(), w.node(), once.Options{Every: every}
			a.ran(waiting(opts), errMine)
			failed := w.Now()
			b.finds(opts, once.Resting)
			wait := b.start(t.Context(), waiting(opts), takes(0, nil))
			require.Equal(t, once.Ran, wait.Granted(failed+rest).Status)
		})
	}
}

func TestNothingIsSentForWhatIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.Fresh()
		for _, name := range []string{"", "a{b"} {
			_, err := n.Do(t.Context(), name, hourly, never(t))
			require.ErrorIs(t, err, berth.ErrInvalidConfig)
			require.ErrorIs(t, n.Run(t.Context(), name, hourly, never(t)), berth.ErrInvalidConfig)
		}
		_, err := n.Do(t.Context(), digest, hourly, nil)
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
		require.ErrorIs(t, n.Run(t.Context(), digest, hourly, nil), berth.ErrInvalidConfig)
		require.ErrorIs(t, n.Run(t.Context(), digest, once.Options{}, never(t)), berth.ErrInvalidConfig)
		_, _, err = n.Begin(t.Context(), digest, once.Options{})
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
		require.Empty(t, n.Scripts())
	})
}

func TestWhatConfigsAreRefused(t *testing.T) {
	t.Parallel()
	redis := berthtest.Redis(t)
	_, err := once.New(nil, qlock.Config{})
	require.ErrorIs(t, err, berth.ErrInvalidConfig)
	for field, cfg := range map[string]qlock.Config{
		"Namespace":      {Namespace: "a{"},
		"Lease":          {Lease: berth.Forever},
		"Defaults.Lease": {Defaults: qlock.LockOptions{Lease: berth.Forever}},
	} {
		_, err := once.New(redis, cfg)
		var refused *berth.ConfigError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, field, refused.Field)
	}
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
		opts := once.Around(test.every, test.at)
		require.NoError(t, opts.Validate())
		require.Equal(t, once.Options{Every: test.every, Offset: test.offset}, opts)
	}
	for field, opts := range map[string]once.Options{
		"Every": once.Around(0, hour), "Offset": once.Around(hour, time.Microsecond),
	} {
		var refused *berth.ConfigError
		require.ErrorAs(t, opts.Validate(), &refused)
		require.Equal(t, field, refused.Field)
	}
	require.Error(t, once.Around(-hour, 0).Validate())
	require.Error(t, once.Around(time.Microsecond, 0).Validate())
	require.NoError(t, once.Around(8784*hour, -8784*hour).Validate())
}
