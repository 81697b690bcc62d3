package qlock_test

import (
	"context"
	"io/fs"
	"maps"
	"math"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/scripts"
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
	{"Lease", qlock.LockOptions{Lease: settings.Longest + ms}},
	{"MaxHold", qlock.LockOptions{MaxHold: settings.Longest + ms}},
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
			return testkit.Second(n.Lock(ctx, name, o))
		},
		"LockAll": func(ctx context.Context, name string, o *qlock.LockOptions) error {
			return testkit.Second(n.LockAll(ctx, []string{"other", name}, o))
		},
		"Do": func(ctx context.Context, name string, o *qlock.LockOptions) error { return n.Do(ctx, name, o, ran) },
		"DoAll": func(ctx context.Context, name string, o *qlock.LockOptions) error {
			return n.DoAll(ctx, []string{name}, o, ran)
		},
	}
	trying = map[string]func(context.Context, string, *qlock.LockOptions) error{
		"TryLock": func(ctx context.Context, name string, o *qlock.LockOptions) error {
			return testkit.Second(n.TryLock(ctx, name, o))
		},
		"TryLockAll": func(ctx context.Context, name string, o *qlock.LockOptions) error {
			return testkit.Second(n.TryLockAll(ctx, []string{name, "other"}, o))
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
		n := w.node()
		n.connect()
		all, _ := calls(n.Locks)
		cannot := func(field string, cfg qlock.Config) {
			requireInvalid(t, field, testkit.Second(qlock.New(n.Node, cfg).Lock(ctx, door, nil)), cfg)
		}
		for _, bad := range badOptions {
			for call, do := range all {
				requireInvalid(t, bad.field, do(ctx, door, &bad.opts), call)
			}
			cannot("Defaults."+bad.field, qlock.Config{Defaults: bad.opts})
		}
		cannot("Defaults.NoDefaults", qlock.Config{Defaults: qlock.LockOptions{NoDefaults: true}})
		for _, lease := range []time.Duration{19 * ms, -time.Second, berth.Forever, time.Second + 1} {
			cannot("Lease", qlock.Config{Lease: lease})
		}
		for name, err := range map[string]error{
			"Do": n.Do(ctx, door, nil, nil), "TryDo": n.TryDo(ctx, door, nil, nil),
			"DoAll": n.DoAll(ctx, []string{door}, nil, nil), "TryDoAll": n.TryDoAll(ctx, []string{door}, nil, nil),
		} {
			require.ErrorIs(t, err, berth.ErrInvalidConfig, name)
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

func TestTheFurthestValuesAreTaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		for name, opts := range map[string]qlock.LockOptions{
			"the highest priority":  {Priority: 127},
			"the lowest priority":   {Priority: -128},
			"the shortest lease":    {Lease: 20 * ms},
			"the longest lease":     {Lease: settings.Longest, MaxHold: settings.Longest},
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
		synctest.Wait() // until its scripts are loaded
		n.Reset()
		bad := qlock.New(n.Node, qlock.Config{Defaults: qlock.LockOptions{MaxWait: -1}})
		for field, locks := range map[string]*qlock.Locks{"Defaults.MaxWait": bad, "node": qlock.New(nil, qlock.Config{})} {
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
		of, err := node.New(w.Redis, node.Config{})
		require.NoError(t, err)
		defer func() { require.NoError(t, of.Close(ctx)) }()
		l := w.got(qlock.New(of, qlock.Config{}).Lock(ctx, door, nil))
		w.requireLeft(5*time.Second, l)
		w.Advance(2 * time.Minute)
		require.NoError(t, l.Err(), "it renews, and has no maximum")
		holders := w.Holders()
		require.Len(t, holders, 1)
		h := holders[0]
		require.NotEmpty(t, h.Label)
		require.Equal(t, []any{5 * time.Second, false, time.Duration(0), ""}, []any{h.Lease, h.NoRenew, h.MaxHold, h.Owner})
		require.Empty(t, h.Meta)
		n, err := w.Look()
		require.NoError(t, err)
		require.Equal(t, l.ID(), n.Lock.Owner)
		require.NoError(t, l.Release(ctx))
		require.GreaterOrEqual(t, w.Expiry(), 3*time.Minute, "the linger")
		require.LessOrEqual(t, w.Expiry(), 3*time.Minute+5*time.Second)
	})
}

// terms are what the server knows of the hold that a call with these options gets.
func (n *proc) terms(opts *qlock.LockOptions) berth.Holder {
	n.w.T.Helper()
	l := n.take(opts)
	holders := n.w.Holders()
	require.Len(n.w.T, holders, 1)
	release(n.w.T, l)
	return holders[0]
}

func TestDefaultsCountWhereACallSaysNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		meta, attrs := map[string]string{"by": "default"}, map[string]any{"a": 1}
		its, callers := maps.Clone(meta), maps.Clone(attrs)
		n := w.with(qlock.LockOptions{Lease: 40 * time.Second, NoRenew: true, MaxHold: time.Minute, Meta: its, Attrs: callers})
		its["by"], callers["a"] = "changed", 2 // the maps of the defaults are the locks' own
		for name, opts := range map[string]*qlock.LockOptions{"nil": nil, "empty": {}, "another field": {Priority: 3}} {
			h := n.terms(opts)
			require.Equal(t, []any{40 * time.Second, true, time.Minute, meta}, []any{h.Lease, h.NoRenew, h.MaxHold, h.Meta}, name)
		}
		h := n.terms(&qlock.LockOptions{Lease: 30 * time.Second, MaxHold: time.Hour, Meta: map[string]string{"own": "x"}})
		require.Equal(t, []any{30 * time.Second, true, time.Hour, map[string]string{"own": "x"}}, []any{h.Lease, h.NoRenew, h.MaxHold, h.Meta})
		h = n.terms(&qlock.LockOptions{MaxHold: berth.Forever, Meta: map[string]string{}})
		require.Equal(t, []any{40 * time.Second, time.Duration(0)}, []any{h.Lease, h.MaxHold})
		require.Empty(t, h.Meta)
		h = n.terms(&qlock.LockOptions{NoDefaults: true})
		require.Equal(t, []any{lease, false, time.Duration(0)}, []any{h.Lease, h.NoRenew, h.MaxHold}, "Config.Lease is no default of options")
		require.Empty(t, h.Meta)
		h = n.terms(&qlock.LockOptions{NoDefaults: true, MaxHold: time.Hour})
		require.Equal(t, []any{lease, time.Hour}, []any{h.Lease, h.MaxHold})

		set := w.gotAll(n.LockAll(context.Background(), []string{"a", "b"}, nil))
		for _, l := range set.Locks() {
			require.Equal(t, 40*time.Second, l.Lease())
		}
		for _, own := range []map[string]any{{"own": true}, {}, attrs} {
			opts := &qlock.LockOptions{Attrs: own}
			if own["a"] != nil {
				opts = nil
			}
			n.Fresh()
			n.terms(opts)
			require.Equal(t, own, n.Told(observe.Granted)[0].Attrs)
		}
	})
}

func TestTheDefaultsOfAWait(t *testing.T) {
	attempts := qlock.Attempts{Max: 3, Delay: 300 * ms, Jitter: -1}
	type row struct {
		defaults, opts qlock.LockOptions
		reason         berth.Reason // "" for a wait without an end
		at             time.Duration
	}
	each(t, map[string]row{
		"MaxWait":                      {qlock.LockOptions{MaxWait: time.Second}, qlock.LockOptions{}, berth.ReasonTimedOut, time.Second},
		"another MaxWait":              {qlock.LockOptions{MaxWait: time.Second}, qlock.LockOptions{MaxWait: 2 * time.Second}, berth.ReasonTimedOut, 2 * time.Second},
		"no MaxWait":                   {qlock.LockOptions{MaxWait: time.Second}, qlock.LockOptions{MaxWait: berth.Forever}, "", 0},
		"MaxWait Forever by default":   {qlock.LockOptions{MaxWait: berth.Forever}, qlock.LockOptions{}, "", 0},
		"attempts":                     {qlock.LockOptions{Attempts: attempts}, qlock.LockOptions{}, berth.ReasonAttempts, 600 * ms},
		"more attempts":                {qlock.LockOptions{Attempts: attempts}, qlock.LockOptions{Attempts: qlock.Attempts{Max: 5}}, berth.ReasonAttempts, 1200 * ms},
		"another delay":                {qlock.LockOptions{Attempts: attempts}, qlock.LockOptions{Attempts: qlock.Attempts{Delay: ms}}, berth.ReasonAttempts, 2 * ms},
		"a delay for who has attempts": {qlock.LockOptions{Attempts: qlock.Attempts{Delay: ms, Jitter: -1}}, qlock.LockOptions{Attempts: qlock.Attempts{Max: 2}}, berth.ReasonAttempts, ms},
		"a delay alone":                {qlock.LockOptions{Attempts: qlock.Attempts{Delay: ms}}, qlock.LockOptions{}, "", 0},
		"MaxWait before attempts":      {qlock.LockOptions{Attempts: attempts}, qlock.LockOptions{MaxWait: 599 * ms}, berth.ReasonTimedOut, 599 * ms},
		"no attempts":                  {qlock.LockOptions{Attempts: attempts}, qlock.LockOptions{Attempts: qlock.Attempts{Max: -1}}, "", 0},
		"no attempts, but MaxWait": {
			qlock.LockOptions{Attempts: attempts, MaxWait: time.Second},
			qlock.LockOptions{Attempts: qlock.Attempts{Max: -1}},
			berth.ReasonTimedOut, time.Second,
		},
		"no defaults": {qlock.LockOptions{Attempts: attempts, MaxWait: time.Second}, qlock.LockOptions{NoDefaults: true}, "", 0},
		"no defaults, and its own": {
			qlock.LockOptions{Attempts: attempts},
			qlock.LockOptions{NoDefaults: true, Attempts: qlock.Attempts{Max: 2, Jitter: -1}},
			berth.ReasonAttempts, 200 * ms,
		},
	}, func(t *testing.T, w *world, test row) {
		held, n := w.node().take(nil), w.with(test.defaults)
		q := n.queue(&test.opts)
		if test.reason != "" {
			q.Refused(test.at, test.reason)
			return
		}
		w.Advance(time.Minute)
		require.True(t, q.Pending(), "%v", q.Err)
		release(t, held)
		q.Granted(time.Minute)
	})
}

func TestTheDefaultsOfALine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.with(qlock.LockOptions{Access: qlock.LIFO, Priority: 2})
		held := a.take(nil)
		lower := b.queue(&qlock.LockOptions{Priority: 1, Access: qlock.Queued})
		first, last := b.queue(nil), b.queue(nil)
		plain, after := b.queue(&qlock.LockOptions{NoDefaults: true}), a.queue(nil)
		queued := b.queue(&qlock.LockOptions{Access: qlock.Queued})
		for _, next := range []*wait{queued, last, first, lower, plain, after} {
			release(t, held)
			held = next.Granted(0)
		}
		release(t, held)
		w.RequireIdle()
		_, err := b.Lock(context.Background(), door, &qlock.LockOptions{RequeueEvery: time.Minute})
		requireInvalid(t, "RequeueEvery", err)
	})
}

func TestTheDefaultOfRequeueEvery(t *testing.T) {
	type row struct {
		opts *qlock.LockOptions
		goes bool
	}
	each(t, map[string]row{
		"nil":         {nil, true},
		"its own":     {&qlock.LockOptions{RequeueEvery: 2 * time.Second}, true},
		"never":       {&qlock.LockOptions{RequeueEvery: berth.Forever}, false},
		"never, LIFO": {&qlock.LockOptions{RequeueEvery: berth.Forever, Access: qlock.LIFO}, false},
		"no defaults": {&qlock.LockOptions{NoDefaults: true}, false},
	}, func(t *testing.T, w *world, test row) {
		n := w.with(qlock.LockOptions{RequeueEvery: time.Second})
		w.node().take(nil)
		n.queue(test.opts)
		w.Advance(2 * time.Second)
		require.Equal(t, test.goes, len(n.Told(observe.Requeued)) > 0)
	})
}

func TestTheDefaultOfAConflict(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.with(qlock.LockOptions{Conflict: qlock.WorkThrough})
		n.takeFor("me", nil)
		require.Equal(t, qlock.Reentered, n.takeFor("me", nil).Via())
		require.Equal(t, qlock.ReenteredExtended, n.takeFor("me", extend(time.Second)).Via())
		require.ErrorIs(t, reenter(n, "me", qlock.FailDeadlock), berth.ErrDeadlock)
		_, err := n.Lock(berth.WithOwner(context.Background(), "me"), door, &qlock.LockOptions{NoDefaults: true})
		require.ErrorIs(t, err, berth.ErrDeadlock, "the built-in strategy")

		for _, opts := range []qlock.LockOptions{{MaxWait: berth.Forever}, {Attempts: qlock.Attempts{Max: -1}}} {
			opts.Conflict = qlock.Wait
			_, err := n.Lock(berth.WithOwner(context.Background(), "me"), door, &opts)
			require.ErrorIs(t, err, berth.ErrDeadlock, "neither the hold nor the wait has an end")
		}

		endless := w.with(qlock.LockOptions{Lease: berth.Forever})
		_, err = endless.Lock(context.Background(), door, &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough})
		requireInvalid(t, "Lease", err)
	})
}

func TestACallThatDoesNotWaitPassesOverTheDefaultsOfAWaitAndRefusesWhatOnlyAWaitHas(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.with(qlock.LockOptions{
			MaxWait: time.Minute, RequeueEvery: time.Minute, Attempts: qlock.Attempts{Max: 1}, Lease: 40 * time.Second,
		})
		l, err := n.TryLock(ctx, door, nil)
		require.NoError(t, err)
		require.Equal(t, 40*time.Second, l.Lease(), "the other defaults count")
		for _, opts := range []*qlock.LockOptions{nil, {Priority: 1}, {Access: qlock.LIFO}, {NoDefaults: true}} {
			_, err = n.TryLock(ctx, door, opts)
			_ = refused(t, berth.ReasonHeld, err)
		}
		n.Reset()
		_, trying := calls(n.Locks)
		for _, c := range []struct {
			field string
			opts  qlock.LockOptions
		}{
			{"MaxWait", qlock.LockOptions{MaxWait: berth.Forever}},
			{"MaxWait", qlock.LockOptions{MaxWait: time.Minute}},
			{"RequeueEvery", qlock.LockOptions{RequeueEvery: time.Hour}},
			{"Attempts.Max", qlock.LockOptions{Attempts: qlock.Attempts{Max: -1}}},
			{"Attempts.Max", qlock.LockOptions{Attempts: qlock.Attempts{Max: 1}}},
			{"Attempts.Delay", qlock.LockOptions{Attempts: qlock.Attempts{Delay: ms}}},
		} {
			for call, do := range trying {
				requireInvalid(t, c.field, do(ctx, door, &c.opts), call)
			}
		}
		require.Empty(t, n.Counts())
	})
}

// In virtual time, so that nothing allocates beside it.
func TestCompletingOptionsAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := qlock.New(berthtest.Node(t), qlock.Config{
			Defaults: qlock.LockOptions{MaxWait: time.Second, Meta: map[string]string{"k": "v"}},
		})
		synctest.Wait()
		for _, opts := range []*qlock.LockOptions{nil, {}, {Priority: 3, MaxHold: berth.Forever}, {NoDefaults: true}} {
			for _, waits := range []bool{true, false} {
				require.Zero(t, testing.AllocsPerRun(100, func() {
					if err := qlock.Complete(locks, opts, waits); err != nil {
						t.Error(err)
					}
				}))
			}
		}
	})
}

// The scripts know an access and a conflict strategy by the word that String says.
func TestTheStrategiesOfTheScriptsAreThoseOfTheOptions(t *testing.T) {
	t.Parallel()
	raw, err := fs.ReadFile(scripts.FS, "owner/ask.lua")
	require.NoError(t, err)
	text := regexp.MustCompile(`conflict  (.*?):.*\n-- +access    (.*?)\n`).FindStringSubmatch(string(raw))
	require.NotNil(t, text)
	var conflicts, accesses []string
	for _, s := range []qlock.Conflict{qlock.FailDeadlock, qlock.Wait, qlock.WorkThrough, qlock.ExtendAndWorkThrough} {
		conflicts = append(conflicts, s.String())
	}
	for _, a := range []qlock.Access{qlock.Queued, qlock.Random, qlock.LIFO} {
		accesses = append(accesses, a.String())
	}
	require.Equal(t, strings.Split(strings.ReplaceAll(text[1], " or ", ", "), ", "), conflicts)
	require.Equal(t, strings.Split(strings.ReplaceAll(text[2], " or ", ", "), ", "), accesses)
	require.Equal(t, "unknown", qlock.Conflict(9).String())
	require.Equal(t, "unknown", qlock.Access(9).String())
}
