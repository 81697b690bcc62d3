package qlock_test

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

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
		meta := map[string]string{"by": "default"}
		n := w.with(qlock.LockOptions{Lease: 40 * time.Second, NoRenew: true, MaxHold: time.Minute, Meta: maps.Clone(meta)})
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

		set, err := n.LockAll(context.Background(), []string{"a", "b"}, nil)
		require.NoError(t, err)
		for _, l := range set.Locks() {
			require.Equal(t, 40*time.Second, l.Lease())
		}
	})
}

func TestTheMapsOfTheDefaultsAreTheLocksOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		defaults := qlock.LockOptions{Meta: map[string]string{"k": "v"}, Attrs: map[string]any{"a": 1}}
		n := w.with(defaults)
		defaults.Meta["k"], defaults.Attrs["a"] = "changed", 2
		require.Equal(t, map[string]string{"k": "v"}, n.terms(nil).Meta)
		n.terms(&qlock.LockOptions{Attrs: map[string]any{"own": true}})
		n.terms(&qlock.LockOptions{Attrs: map[string]any{}})
		var attrs []map[string]any
		for _, e := range n.Told(observe.Granted) {
			attrs = append(attrs, e.Attrs)
		}
		require.Equal(t, []map[string]any{{"a": 1}, {"own": true}, {}}, attrs)
	})
}

func TestTheDefaultsOfAWait(t *testing.T) {
	attempts := qlock.Attempts{Max: 3, Delay: 300 * ms, Jitter: -1}
	for name, test := range map[string]struct {
		defaults, opts qlock.LockOptions
		reason         berth.Reason // "" for a wait without an end
		at             time.Duration
	}{
		"MaxWait":                      {qlock.LockOptions{MaxWait: time.Second}, qlock.LockOptions{}, berth.ReasonTimedOut, time.Second},
		"another MaxWait":              {qlock.LockOptions{MaxWait: time.Second}, qlock.LockOptions{MaxWait: 2 * time.Second}, berth.ReasonTimedOut, 2 * time.Second},
		"no MaxWait":                   {qlock.LockOptions{MaxWait: time.Second}, qlock.LockOptions{MaxWait: berth.Forever}, "", 0},
		"MaxWait Forever by default":   {qlock.LockOptions{MaxWait: berth.Forever}, qlock.LockOptions{}, "", 0},
		"attempts":                     {qlock.LockOptions{Attempts: attempts}, qlock.LockOptions{}, berth.ReasonAttempts, 600 * ms},
		"more attempts":                {qlock.LockOptions{Attempts: attempts}, qlock.LockOptions{Attempts: qlock.Attempts{Max: 5}}, berth.ReasonAttempts, 1200 * ms},
		"another delay":                {qlock.LockOptions{Attempts: attempts}, qlock.LockOptions{Attempts: qlock.Attempts{Delay: ms}}, berth.ReasonAttempts, 2 * ms},
		"a delay for who has attempts": {qlock.LockOptions{Attempts: qlock.Attempts{Delay: ms, Jitter: -1}}, qlock.LockOptions{Attempts: qlock.Attempts{Max: 2}}, berth.ReasonAttempts, ms},
		"a delay alone":                {qlock.LockOptions{Attempts: qlock.Attempts{Delay: ms}}, qlock.LockOptions{}, "", 0},
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
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
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
		})
	}
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
	for name, test := range map[string]struct {
		opts *qlock.LockOptions
		goes bool
	}{
		"nil":         {nil, true},
		"its own":     {&qlock.LockOptions{RequeueEvery: 2 * time.Second}, true},
		"never":       {&qlock.LockOptions{RequeueEvery: berth.Forever}, false},
		"never, LIFO": {&qlock.LockOptions{RequeueEvery: berth.Forever, Access: qlock.LIFO}, false},
		"no defaults": {&qlock.LockOptions{NoDefaults: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.with(qlock.LockOptions{RequeueEvery: time.Second})
				w.node().take(nil)
				n.queue(test.opts)
				w.Advance(2 * time.Second)
				require.Equal(t, test.goes, len(n.Told(observe.Requeued)) > 0)
			})
		})
	}
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

func TestACallThatDoesNotWaitPassesOverTheDefaultsOfAWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.with(qlock.LockOptions{
			MaxWait: time.Minute, RequeueEvery: time.Minute, Attempts: qlock.Attempts{Max: 1}, Lease: 40 * time.Second,
		})
		l, err := n.TryLock(ctx, door, nil)
		require.NoError(t, err)
		require.Equal(t, 40*time.Second, l.Lease(), "the other defaults count")
		for _, opts := range []*qlock.LockOptions{nil, {Priority: 1}, {Access: qlock.LIFO}, {NoDefaults: true}} {
			_, err = n.TryLock(ctx, door, opts)
			var refusal *berth.AcquireError
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, berth.ReasonHeld, refusal.Reason)
		}
		for field, opts := range map[string]qlock.LockOptions{
			"MaxWait": {MaxWait: berth.Forever}, "RequeueEvery": {RequeueEvery: time.Hour},
			"Attempts.Max": {Attempts: qlock.Attempts{Max: -1}}, "Attempts.Delay": {Attempts: qlock.Attempts{Delay: ms}},
		} {
			_, err := n.TryLock(ctx, door, &opts)
			requireInvalid(t, field, err)
		}
	})
}

func TestDefaultsThatNoCallCouldGoByAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		refused := func(field string, cfg qlock.Config) {
			_, err := qlock.New(n.Node, &cfg).Lock(context.Background(), door, nil)
			requireInvalid(t, field, err, cfg)
		}
		for _, bad := range badOptions {
			refused("Defaults."+bad.field, qlock.Config{Defaults: bad.opts})
		}
		refused("Defaults.NoDefaults", qlock.Config{Defaults: qlock.LockOptions{NoDefaults: true}})
		for _, lease := range []time.Duration{19 * ms, -time.Second, berth.Forever, time.Second + 1} {
			refused("Lease", qlock.Config{Lease: lease})
		}
		require.Empty(t, w.Keys())
	})
}

// In virtual time, so that nothing allocates beside it.
func TestCompletingOptionsAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := qlock.New(berthtest.Node(t), &qlock.Config{
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
