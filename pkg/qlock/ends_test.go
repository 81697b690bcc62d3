package qlock_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// The table of the docs on how a hold ends, as far as it is about locks.
func TestHowALockEnds(t *testing.T) {
	ctx := context.Background()
	plays := map[string]func(w *world, n *proc) *qlock.Lock{
		"Release of its handle": func(w *world, n *proc) *qlock.Lock {
			l := n.take(nil)
			release(w.T, l)
			return l
		},
		"Release of one of several entries": func(w *world, n *proc) *qlock.Lock {
			n.takeFor("me", nil)
			l := n.takeFor("me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
			release(w.T, l)
			return l
		},
		"Do or DoAll returns": func(w *world, n *proc) *qlock.Lock {
			set, err := n.LockAll(ctx, []string{door}, nil) // as DoAll does
			require.NoError(w.T, err)
			require.NoError(w.T, set.Release(ctx))
			require.NoError(w.T, n.Do(ctx, door, nil, func(context.Context) error { return nil }))
			return set.Locks()[0]
		},
		"Close of its node": func(w *world, n *proc) *qlock.Lock {
			l := n.take(nil)
			require.NoError(w.T, n.Close(ctx))
			return l
		},
		"ReleaseAll": func(w *world, n *proc) *qlock.Lock {
			l := n.take(nil)
			_, err := n.ReleaseAll(ctx)
			require.NoError(w.T, err)
			return l
		},
		"Detach; that somebody resumes it later is no news to the handle": func(w *world, n *proc) *qlock.Lock {
			l := n.take(nil)
			_ = w.node().resume(detach(w.T, l))
			return l
		},
		"another handle of this process resumes it, after a Detach that ended nothing": func(w *world, n *proc) *qlock.Lock {
			l := n.take(nil)
			w.Advance(0) // nothing else is under way that the break would hit
			n.Once("lock_renew", link.LoseReply)
			_, err := l.Detach(ctx)
			require.Error(w.T, err)
			w.Advance(0) // the node knows of the break
			_ = n.resume(berth.Token{Kind: "lock", Namespace: "berth", Name: door, Claim: l.ID(), Node: n.ID(), Fence: l.Fence()})
			return l
		},
		"Operator.Release by name": func(w *world, n *proc) *qlock.Lock {
			l := n.take(nil)
			require.NoError(w.T, w.node().end(ctx, door))
			return l
		},
		"Operator.Release by node": func(w *world, n *proc) *qlock.Lock {
			l := n.take(nil)
			_, err := w.node().Operator().Release(ctx, berth.Target{Node: n.ID()})
			require.NoError(w.T, err)
			return l
		},
		"its MaxHold is over": func(_ *world, n *proc) *qlock.Lock {
			return n.take(&qlock.LockOptions{MaxHold: time.Second})
		},
		"its lease is over, under NoRenew": func(_ *world, n *proc) *qlock.Lock {
			return n.take(&qlock.LockOptions{NoRenew: true})
		},
		"its lease is over, no renewal was answered in time": func(_ *world, n *proc) *qlock.Lock {
			l := n.take(nil)
			n.Cut()
			return l
		},
		"its lease is over, a newer release wrote the name and no renewal was taken: event renew_refused, level error": func(w *world, n *proc) *qlock.Lock {
			l := n.take(nil)
			w.Do("SET", stateKey, "f3 and more")
			w.Advance(lease / 2)
			told := n.Told(observe.RenewRefused)
			require.Len(w.T, told, 1, "with the first refusal")
			require.Equal(w.T, slog.LevelError, told[0].Kind.Level())
			require.ErrorIs(w.T, told[0].Err, berth.ErrIncompatible)
			require.Positive(w.T, told[0].Left)
			return l
		},
		"the server has forgotten it: a flush, a failover": func(w *world, n *proc) *qlock.Lock {
			l := n.take(nil)
			w.Do("FLUSHALL")
			return l
		},
		"its node was silent in its swarm, or was found dead": func(w *world, n *proc) *qlock.Lock {
			require.NoError(w.T, n.Swarm().Start(ctx))
			l := n.take(hour())
			n.condemn()
			return l
		},
		"Release finds that it is not there any more": func(w *world, n *proc) *qlock.Lock {
			l := n.take(nil)
			w.Do("FLUSHALL")
			require.ErrorIs(w.T, l.Release(ctx), berth.ErrLost)
			return l
		},
	}
	rows := testkit.Ends(t, "../..", "TestHowALockEnds")
	require.ElementsMatch(t, slices.Collect(maps.Keys(rows)), slices.Collect(maps.Keys(plays)), "each row is played")
	for how, row := range rows {
		t.Run(how, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node(node.Config{Retry: berth.Retry{Attempts: 1}, Swarm: node.SwarmConfig{FlushEvery: -1}})
				l := plays[how](w, n)
				w.Advance(2 * lease)
				want := map[string]error{
					"ErrReleased": berth.ErrReleased, "ErrExpired": berth.ErrExpired, "ErrLost": berth.ErrLost,
					"ErrLost, ErrIncompatible": berth.ErrIncompatible, "ErrReleased; Release returns ErrLost": berth.ErrReleased,
				}[row.Err]
				require.ErrorIs(t, l.Err(), want)
				require.ErrorIs(t, context.Cause(l.Context()), want)
				require.Equal(t, strings.HasPrefix(row.Err, "ErrLost"), errors.Is(l.Err(), berth.ErrLost))
				var end *berth.EndError
				require.ErrorAs(t, l.Err(), &end)
				var told []observe.Kind
				for _, e := range n.Events() {
					ends := []observe.Kind{observe.Released, observe.Detached, observe.ReleasedByOther, observe.Expired, observe.Lost, observe.ReentryEnded}
					if e.Claim == l.ID() && slices.Contains(ends, e.Kind) {
						told = append(told, e.Kind)
					}
				}
				require.Equal(t, []observe.Kind{observe.Kind(row.Event)}, told)
				require.Equal(t, row.Level, strings.ToLower(told[0].Level().String()))
			})
		})
	}
}
