package qlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestACrashedWaiterAtTheHeadCostsAtMostItsOwnLease(t *testing.T) {
	type row struct {
		dead     node.Config
		released time.Duration // when the holder releases
		at       time.Duration // when the next is granted, at the earliest
	}
	each(t, map[string]row{
		// The lock is handed to the one that died, and stays with it until its lease ends.
		"just before the release":           {released: time.Second, at: lease},
		"with a shorter lease":              {dead: node.Config{Lease: 900 * ms}, released: 100 * ms, at: 900 * ms},
		"long before":                       {released: 10 * time.Second, at: 10 * time.Second},
		"with a longer lease, for so long":  {dead: node.Config{Lease: 30 * time.Second}, released: 10 * time.Second, at: 30 * time.Second},
		"with a longer lease, and released": {dead: node.Config{Lease: 30 * time.Second}, released: 31 * time.Second, at: 31 * time.Second},
	}, func(t *testing.T, w *world, test row) {
		a, b, c := w.node(), w.node(test.dead), w.node()
		held := a.take(nil)
		b.queue(nil)
		next := c.queue(nil)
		b.Die()
		w.Until(test.released)
		testkit.RequirePending(w.T, next)
		release(t, held)
		l := next.GrantedBy(test.at)
		b.Shut()
		release(t, l)
		w.RequireIdle()
	})
}

// The line is deleted by hand, or evicted, and the state stays. The owner has two
// entries.
func TestALineOfALockThatIsDeletedStandsAgain(t *testing.T) {
	each(t, map[string]bool{
		"its holder lives": false, "its holder is dead": true,
	}, func(t *testing.T, w *world, die bool) {
		a, b := w.node(), w.node()
		l := a.takeFor("me", nil)
		inner := a.again("me")
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
}

// That each script refuses such a state is proved by internal/model; this shows that each call says so.
func TestAStateOfAnotherFormatIsLeftAlone(t *testing.T) {
	each(t, map[string][][]string{
		"a newer one":                    {{"HSET", stateKey, "v", "4 and more"}},
		"a newer one of thin names":      {{"DEL", lineKey}, {"SET", stateKey, "f4 and more"}},
		"one from before there were any": {{"HDEL", stateKey, "v"}, {"HSET", stateKey, "fmt", "1"}},
	}, func(t *testing.T, w *world, write [][]string) {
		a, b := w.node(), w.node()
		held := a.takeFor("me", hour())
		waits := b.queue(&qlock.LockOptions{RequeueEvery: time.Second})
		token := berth.Token{Kind: "lock", Namespace: "berth", Name: door, Claim: held.ID(), Node: a.ID()}
		for _, words := range write {
			w.Do(words...)
		}
		before := w.kept()
		all, _ := calls(b.Locks)
		for call, do := range all {
			require.ErrorIs(t, do(ctx, door, nil), berth.ErrIncompatible, call)
		}
		for call, do := range map[string]func() error{
			"Release: a name":   func() error { return b.end(ctx, door) },
			"Operator.Extend":   func() error { return b.extend(ctx, door, time.Second) },
			"Release: a node":   func() error { return testkit.Second(b.Operator().Release(ctx, berth.Target{Node: a.ID()})) },
			"Sweep":             func() error { return testkit.Second(b.Operator().Sweep(ctx, keyspace.Lock)) },
			"Resume":            func() error { return testkit.Second(b.Resume(ctx, token)) },
			"Renew":             func() error { return held.Renew(ctx) },
			"Extend":            func() error { return held.Extend(ctx, time.Second) },
			"Detach":            func() error { return testkit.Second(held.Detach(ctx)) },
			"WorkThrough":       func() error { return reenter(b, "me", qlock.WorkThrough) },
			"Extend and work":   func() error { return reenter(b, "me", qlock.ExtendAndWorkThrough) },
			"the wait that was": func() error { w.Advance(lease); <-waits.Done; return waits.Err },
		} {
			require.ErrorIs(t, do(), berth.ErrIncompatible, call)
		}
		require.ErrorIs(t, held.Release(ctx), berth.ErrIncompatible)
		require.Equal(t, before, w.kept(), "nothing is written")
	})
}

// kept is what the server has of the door, whatever that is, and for how long.
func (w *world) kept() (all []any) {
	w.T.Helper()
	for _, words := range [][]string{
		{"MGET", stateKey}, {"ZRANGE", lineKey, "0", "-1", "WITHSCORES"}, {"PEXPIRETIME", stateKey}, {"PEXPIRETIME", lineKey},
	} {
		answer, err := w.Do(words...).ToAny()
		require.NoError(w.T, err)
		all = append(all, answer)
	}
	if all[0].([]any)[0] == nil {
		fields, err := w.Do("HGETALL", stateKey).AsStrMap()
		require.NoError(w.T, err)
		all[0] = fields
	}
	return all
}

// reenter enters once more for an owner.
func reenter(n *proc, owner string, how qlock.Conflict) error {
	_, err := n.Lock(berth.WithOwner(context.Background(), owner), door, &qlock.LockOptions{Conflict: how})
	return err
}
