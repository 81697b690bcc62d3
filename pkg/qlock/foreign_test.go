package qlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/scriptkit"
)

func TestAKeyOfAnotherTypeIsAnErrorAndIsLeftAlone(t *testing.T) {
	for key, opts := range map[string]*qlock.LockOptions{
		stateKey: nil,
		lineKey:  {Lease: berth.Forever}, // a thin name has no line
	} {
		t.Run(key, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				w.Do("SET", key, "mine")
				q := n.queue(opts)
				if q.Pending() {
					w.Do("DEL", key) // so that the test can end
					t.Fatal("it waits for what cannot come")
				}
				refusal := q.Refused(0, berth.ReasonFailed)
				require.ErrorContains(t, refusal, "holds a string instead of")
				require.NotErrorIs(t, refusal, berth.ErrBusy)
				_, err := n.TryLock(context.Background(), door, opts)
				require.ErrorContains(t, err, "holds a string instead of")
				synctest.Wait()
				require.Equal(t, []string{key}, w.Keys())
				text, err := w.Do("GET", key).ToString()
				require.NoError(t, err)
				require.Equal(t, "mine", text)
			})
		})
	}
}

func TestAStateOfAnotherFormatIsLeftAlone(t *testing.T) {
	for name, test := range map[string]struct {
		write  [][]string
		format int64
	}{
		"a newer one":                    {[][]string{{"HSET", stateKey, "v", "3 and more"}}, 3},
		"a newer one of thin names":      {[][]string{{"DEL", lineKey}, {"SET", stateKey, "f3 and more"}}, 3},
		"one from before there were any": {[][]string{{"HDEL", stateKey, "v"}, {"HSET", stateKey, "fmt", "1"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx := context.Background()
				a, b := w.node(), w.node()
				held := a.takeFor("me", &qlock.LockOptions{NoRenew: true, Lease: time.Hour})
				waits := b.queue(&qlock.LockOptions{RequeueEvery: time.Second})
				token := berth.Token{Kind: "lock", Namespace: "berth", Name: door, Claim: held.ID(), Node: a.ID()}
				for _, words := range test.write {
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
					"Release: a node":   func() error { _, err := b.Operator().Release(ctx, berth.Target{Node: a.ID()}); return err },
					"Sweep":             func() error { _, err := b.Operator().Sweep(ctx, keyspace.Lock); return err },
					"Resume":            func() error { _, err := b.Resume(ctx, token); return err },
					"Renew":             func() error { return held.Renew(ctx) },
					"Extend":            func() error { return held.Extend(ctx, time.Second) },
					"Detach":            func() error { _, err := held.Detach(ctx); return err },
					"WorkThrough":       func() error { return reenter(b, "me", qlock.WorkThrough) },
					"Extend and work":   func() error { return reenter(b, "me", qlock.ExtendAndWorkThrough) },
					"the wait that was": func() error { w.Advance(lease); <-waits.Done; return waits.Err },
				} {
					require.ErrorIs(t, do(), berth.ErrIncompatible, call)
				}
				require.ErrorIs(t, held.Release(ctx), berth.ErrIncompatible)
				for _, r := range []scriptkit.Reply{
					w.Call("lock_force_hold", "60000", "berth:wake:", door, "0", "60000"),
					w.Call("lock_extend", "60000", "berth:wake:", door, "1000", "id", "0"),
				} {
					require.Equal(t, "incompatible", r.Status())
					require.Equal(t, test.format, r.Int(1))
				}
				require.Equal(t, before, w.kept(), "nothing is written")
			})
		})
	}
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
