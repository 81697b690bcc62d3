package qlock_test

import (
	"context"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/node"
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

// calls are the calls that take options, by name, and those of them that do not wait.
func calls(n *qlock.Locks) (all, trying map[string]func(ctx context.Context, name string, o *qlock.LockOptions) error) {
	ran := func(context.Context) error { return errMine }
	all = map[string]func(context.Context, string, *qlock.LockOptions) error{
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
	maps.Copy(all, trying)
	return all, trying
}

func TestABadOptionIsNamedAndNothingIsSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		n.connect()
		all, _ := calls(n.Locks)
		for _, bad := range badOptions {
			for call, do := range all {
				requireInvalid(t, bad.field, do(ctx, door, &bad.opts), call)
			}
		}
		for _, name := range []string{"", "a{b", "a}b", "a\nb", "\xff", strings.Repeat("x", 513)} {
			for call, do := range all {
				requireInvalid(t, "name", do(ctx, name, nil), call)
			}
		}
		owned := berth.WithOwner(ctx, strings.Repeat("x", 513))
		for call, do := range all {
			requireInvalid(t, "owner", do(owned, door, nil), call)
		}
		requireInvalid(t, "name", n.extend(ctx, "a{b", time.Second))
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
		_, trying := calls(n.Locks)
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

// New has no error: each call says what is wrong with the arguments of New, and so does Check of the node.
func TestBadArgumentsOfNewAreWhatEachCallReturns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		held := n.take(nil).Context()
		n.Reset()
		bad := qlock.New(n.Node, &qlock.Config{Defaults: qlock.LockOptions{MaxWait: -1}})
		for field, locks := range map[string]*qlock.Locks{"Defaults.MaxWait": bad, "node": qlock.New(nil, nil)} {
			all, _ := calls(locks)
			for call, do := range all {
				requireInvalid(t, field, do(held, door, nil), call)
			}
			_, err := locks.Resume(held, berth.Token{})
			requireInvalid(t, field, err)
			require.Zero(t, locks.Fence(held, door))
			require.Nil(t, locks.Wanted(held, door))
		}
		requireInvalid(t, "node", qlock.NewOperator(nil).Extend(held, door, time.Second))
		_, want := bad.Lock(held, door, nil)
		_, err := n.Check(held)
		require.Same(t, want, err)
		require.Empty(t, n.Counts(), "nothing is sent")
	})
}

func TestABadConfigIsNamed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, err := node.New(nil, node.Config{})
		requireInvalid(t, "redis", err)
		for _, bad := range []struct {
			field string
			cfg   node.Config
		}{
			{"Namespace", node.Config{Namespace: "a{b"}},
			{"Namespace", node.Config{Namespace: "a*"}},
			{"Label", node.Config{Label: strings.Repeat("x", 513)}},
			{"Lease", node.Config{Lease: 19 * ms}},
			{"Lease", node.Config{Lease: -time.Second}},
			{"Lease", node.Config{Lease: berth.Forever}},
			{"Lease", node.Config{Lease: time.Second + 1}},
			{"Linger", node.Config{Linger: -time.Second}},
			{"Linger", node.Config{Linger: ms + 1}},
			{"CallTimeout", node.Config{CallTimeout: -1}},
			{"CleanupTimeout", node.Config{CleanupTimeout: -1}},
			{"Retry.Attempts", node.Config{Retry: berth.Retry{Attempts: -1}}},
			{"Retry.Factor", node.Config{Retry: berth.Retry{Factor: 0.5}}},
			{"Swarm.ProbeEvery", node.Config{Swarm: node.SwarmConfig{ProbeEvery: -1}}},
			{"Swarm.ZombieAfter", node.Config{Swarm: node.SwarmConfig{ZombieAfter: time.Second}}},
		} {
			_, err := node.New(w.Redis, bad.cfg)
			requireInvalid(t, bad.field, err, bad.cfg)
		}
		require.Empty(t, w.Keys())
	})
}

func TestTheDefaultsOfALock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		of, err := node.New(w.Redis, node.Config{})
		require.NoError(t, err)
		defer func() { require.NoError(t, of.Close(ctx)) }()
		l, err := qlock.New(of, nil).Lock(ctx, door, nil)
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
