package qlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
)

// A holder that overran its lease: whatever it calls, its successor keeps what it
// has, to the last byte of its record.
func TestAHolderThatOverranItsLeaseCannotTouchItsSuccessor(t *testing.T) {
	for name, opts := range map[string]qlock.LockOptions{
		"a fixed lease":    {NoRenew: true, Lease: time.Second},
		"a renewing lease": {Lease: time.Second},
		"a maximum hold":   {MaxHold: time.Second},
	} {
		for owner, successorOf := range map[string]string{"another owner": "other", "the same owner": "me"} {
			t.Run(name+", "+owner, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					ctx := context.Background()
					a, b := w.node(), w.node()
					old := a.takeFor("me", &opts)
					q := b.queueOn(berth.WithOwner(ctx, successorOf), &qlock.LockOptions{
						NoRenew: true, Lease: time.Minute, Conflict: qlock.Wait, MaxWait: time.Hour,
					})
					if name == "a renewing lease" {
						a.Stall()
					}
					<-q.Done
					require.NoError(t, q.Err)
					successor := q.Got
					a.Flow()
					w.Advance(100 * ms)
					want := berth.ErrExpired
					if name == "a renewing lease" {
						want = berth.ErrLost
					}
					before, left := w.Dump(), successor.Left()
					for call, do := range map[string]func() error{
						"Renew":   func() error { return old.Renew(ctx) },
						"Extend":  func() error { return old.Extend(ctx, time.Second) },
						"Detach":  func() error { _, err := old.Detach(ctx); return err },
						"Err":     old.Err,
						"Release": func() error { return old.Release(ctx) },
					} {
						err := do()
						require.ErrorIs(t, err, want, call)
						require.ErrorIs(t, err, berth.ErrNotHeld, call)
						synctest.Wait()
						require.Equal(t, before, w.Dump(), call)
					}

					// What it sent before it knew comes late.
					for _, mode := range []string{"beat", "renew", "detach", "extend 60000 late"} {
						r := w.Call("lock_renew", "60000", "berth:wake:", door, a.ID(), old.ID(), mode)
						require.Equal(t, "unknown", r.Str(4), mode)
						require.Equal(t, before, w.Dump(), mode)
					}
					r := w.Call("lock_release", "60000", "berth:wake:", door, a.ID(), old.ID(), "0")
					require.Equal(t, "not_held", r.Status())
					// Nor under the successor's name, by another node.
					r = w.Call("lock_release", "60000", "berth:wake:", door, a.ID(), successor.ID(), "0")
					require.Equal(t, "taken", r.Status())
					r = w.Call("lock_renew", "60000", "berth:wake:", door, a.ID(), successor.ID(), "extend 60000 late")
					require.Equal(t, "taken", r.Str(4))
					require.Equal(t, before, w.Dump())
					require.NoError(t, successor.Err())
					require.Equal(t, left, successor.Left())
					w.honest(successor)
					release(t, successor)
					w.RequireIdle()
				})
			})
		}
	}
}
