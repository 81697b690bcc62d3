package qlock_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
)

// requireInvalid fails unless the error names the field.
func requireInvalid(t *testing.T, field string, err error, what ...any) {
	t.Helper()
	require.ErrorIs(t, err, berth.ErrInvalidConfig, what...)
	var invalid *berth.ConfigError
	require.ErrorAs(t, err, &invalid, what...)
	require.Equal(t, field, invalid.Field, what...)
	require.NotEmpty(t, invalid.Problem, what...)
	require.NotErrorIs(t, err, berth.ErrNotAcquired, what...)
}

// badOptions are values that cannot be, by the field that the error names.
var badOptions = []struct {
	field string
	opts  qlock.LockOptions
}{
	{"Priority", qlock.LockOptions{Priority: 128}},
	{"Priority", qlock.LockOptions{Priority: -129}},
	{"Lease", qlock.LockOptions{Lease: 19 * ms}},
	{"Lease", qlock.LockOptions{Lease: -ms}},
	{"Lease", qlock.LockOptions{Lease: math.MinInt64}},
	{"Lease", qlock.LockOptions{Lease: 20*ms + 1}},
	{"Lease", qlock.LockOptions{Lease: berth.Forever, Conflict: qlock.ExtendAndWorkThrough}},
	{"MaxHold", qlock.LockOptions{MaxHold: 19 * ms}},
	{"MaxHold", qlock.LockOptions{MaxHold: -ms}},
	{"MaxHold", qlock.LockOptions{MaxHold: time.Second + time.Microsecond}},
	{"MaxWait", qlock.LockOptions{MaxWait: -1}},
	{"Access", qlock.LockOptions{Access: -1}},
	{"Access", qlock.LockOptions{Access: qlock.LIFO + 1}},
	{"Conflict", qlock.LockOptions{Conflict: -1}},
	{"Conflict", qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough + 1}},
	{"RequeueEvery", qlock.LockOptions{RequeueEvery: 20*ms - 1}},
	{"RequeueEvery", qlock.LockOptions{RequeueEvery: -time.Second}},
	{"RequeueEvery", qlock.LockOptions{RequeueEvery: time.Second, Access: qlock.LIFO}},
	{"Attempts.Max", qlock.LockOptions{Attempts: qlock.Attempts{Max: 1_000_001}}},
	{"Attempts.Delay", qlock.LockOptions{Attempts: qlock.Attempts{Delay: -1}}},
	{"Attempts.Delay", qlock.LockOptions{Attempts: qlock.Attempts{Max: 1, Delay: -1}}},
	{"Attempts.Delay", qlock.LockOptions{Attempts: qlock.Attempts{Max: 2, Delay: berth.Forever}}},
	{"Meta", qlock.LockOptions{Meta: map[string]string{"key": strings.Repeat("x", 16<<10-2)}}},
}

// calls are the calls of a client that take options, by name: the waiting ones
// first.
func calls(n *node) (waiting, trying map[string]func(ctx context.Context, name string, o *qlock.LockOptions) error) {
	ran := func(context.Context) error { return errMine }
	waiting = map[string]func(context.Context, string, *qlock.LockOptions) error{
		"Lock": func(ctx context.Context, name string, o *qlock.LockOptions) error {
			_, err := n.Lock(ctx, name, o)
			return err
		},
		"LockAll": func(ctx context.Context, name string, o *qlock.LockOptions) error {
			_, err := n.LockAll(ctx, []string{"other", name}, o)
			return err
		},
		"Do": func(ctx context.Context, name string, o *qlock.LockOptions) error { return n.Do(ctx, name, o, ran) },
		"DoAll": func(ctx context.Context, name string, o *qlock.LockOptions) error {
			return n.DoAll(ctx, []string{name}, o, ran)
		},
	}
	trying = map[string]func(context.Context, string, *qlock.LockOptions) error{
		"TryLock": func(ctx context.Context, name string, o *qlock.LockOptions) error {
			_, err := n.TryLock(ctx, name, o)
			return err
		},
		"TryLockAll": func(ctx context.Context, name string, o *qlock.LockOptions) error {
			_, err := n.TryLockAll(ctx, []string{name, "other"}, o)
			return err
		},
		"TryDo": func(ctx context.Context, name string, o *qlock.LockOptions) error { return n.TryDo(ctx, name, o, ran) },
		"TryDoAll": func(ctx context.Context, name string, o *qlock.LockOptions) error {
			return n.TryDoAll(ctx, []string{name}, o, ran)
		},
	}
	return waiting, trying
}

func TestABadOptionIsNamedAndNothingIsSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		n.connect()
		waiting, trying := calls(n)
		for _, bad := range badOptions {
			for call, do := range waiting {
				requireInvalid(t, bad.field, do(ctx, door, &bad.opts), call)
			}
			for call, do := range trying {
				requireInvalid(t, bad.field, do(ctx, door, &bad.opts), call)
			}
		}
		for _, name := range []string{"", "a{b", "a}b", "a\nb", "\xff", strings.Repeat("x", 513)} {
			for call, do := range waiting {
				requireInvalid(t, "name", do(ctx, name, nil), call)
			}
			for call, do := range trying {
				requireInvalid(t, "name", do(ctx, name, nil), call)
			}
		}
		owned := berth.WithOwner(ctx, strings.Repeat("x", 513))
		for call, do := range waiting {
			requireInvalid(t, "owner", do(owned, door, nil), call)
		}
		for call, do := range trying {
			requireInvalid(t, "owner", do(owned, door, nil), call)
		}
		requireInvalid(t, "name", n.Operator().Extend(ctx, "a{b", time.Second))
		_, err := n.LockAll(ctx, nil, nil)
		requireInvalid(t, "names", err)
		require.Empty(t, n.Counts(), "nothing is sent")
		require.Empty(t, w.Keys(), "nothing is written")
		require.Empty(t, n.Kinds(), "nothing is told")
	})
}

func TestACallThatDoesNotWaitRefusesWhatOnlyAWaitHas(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		_, trying := calls(n)
		for field, opts := range map[string]qlock.LockOptions{
			"MaxWait":      {MaxWait: time.Minute},
			"Attempts.Max": {Attempts: qlock.Attempts{Max: 1}},
			"RequeueEvery": {RequeueEvery: time.Minute},
		} {
			for call, do := range trying {
				requireInvalid(t, field, do(context.Background(), door, &opts), call)
			}
		}
		require.Empty(t, n.Counts())
		require.Empty(t, w.Keys())
	})
}

func TestTheFurthestValuesAreTaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		for name, opts := range map[string]qlock.LockOptions{
			"the highest priority":  {Priority: 127},
			"the lowest priority":   {Priority: -128},
			"the shortest lease":    {Lease: 20 * ms},
			"no end":                {Lease: berth.Forever, MaxHold: berth.Forever},
			"the shortest hold":     {MaxHold: 20 * ms},
			"an instant of waiting": {MaxWait: 1},
			"the shortest period":   {RequeueEvery: 20 * ms},
			"the most attempts":     {Attempts: qlock.Attempts{Max: 1_000_000, Delay: 1, Jitter: -1}},
			"much metadata":         {Meta: map[string]string{"key": strings.Repeat("x", 16<<10-3)}},
		} {
			l, err := n.Lock(context.Background(), door, &opts)
			require.NoError(t, err, name)
			release(t, l)
		}
		l := n.takeFor(strings.Repeat("x", 512), nil)
		release(t, l)
		w.RequireIdle()
	})
}

func TestABadConfigIsNamed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, err := qlock.New(nil, qlock.Config{})
		requireInvalid(t, "redis", err)
		for _, bad := range []struct {
			field string
			cfg   qlock.Config
		}{
			{"Namespace", qlock.Config{Namespace: "a{b"}},
			{"Namespace", qlock.Config{Namespace: "a*"}},
			{"Label", qlock.Config{Label: strings.Repeat("x", 513)}},
			{"Lease", qlock.Config{Lease: 19 * ms}},
			{"Lease", qlock.Config{Lease: -time.Second}},
			{"Lease", qlock.Config{Lease: berth.Forever}},
			{"Lease", qlock.Config{Lease: time.Second + 1}},
			{"Linger", qlock.Config{Linger: -time.Second}},
			{"Linger", qlock.Config{Linger: ms + 1}},
			{"CallTimeout", qlock.Config{CallTimeout: -1}},
			{"CleanupTimeout", qlock.Config{CleanupTimeout: -1}},
			{"Defaults.Access", qlock.Config{Defaults: qlock.LockOptions{Access: -1}}},
			{"Defaults.Access", qlock.Config{Defaults: qlock.LockOptions{Access: qlock.LIFO + 1}}},
			{"Retry.Attempts", qlock.Config{Retry: berth.Retry{Attempts: -1}}},
			{"Swarm.ProbeEvery", qlock.Config{Swarm: qlock.SwarmConfig{ProbeEvery: -1}}},
			{"Swarm.ZombieAfter", qlock.Config{Swarm: qlock.SwarmConfig{ZombieAfter: time.Second}}},
		} {
			_, err := qlock.New(w.Redis, bad.cfg)
			requireInvalid(t, bad.field, err, bad.cfg)
		}
		require.Empty(t, w.Keys())
	})
}

func TestTheDefaultsOfALock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		c, err := qlock.New(w.Redis, qlock.Config{})
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close(ctx)) }()
		l, err := c.Lock(ctx, door, nil)
		require.NoError(t, err)
		left, ok := w.LeftOf(l.ID())
		require.True(t, ok)
		require.Equal(t, 5*time.Second, left)
		w.Advance(2 * time.Minute)
		require.NoError(t, l.Err(), "it renews, and has no maximum")
		holders := w.Holders()
		require.Len(t, holders, 1)
		h := holders[0]
		require.NotEmpty(t, h.Label)
		require.Equal(t, 5*time.Second, h.Lease)
		require.False(t, h.NoRenew)
		require.Zero(t, h.MaxHold)
		require.Empty(t, h.Owner)
		require.Empty(t, h.Meta)
		n, err := w.Look()
		require.NoError(t, err)
		require.Equal(t, l.ID(), n.Lock.Owner)
		require.NoError(t, l.Release(ctx))
		require.GreaterOrEqual(t, w.Expiry(), 3*time.Minute, "the linger")
		require.LessOrEqual(t, w.Expiry(), roundUp(3*time.Minute+5*time.Second))
	})
}
