package inspect_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berth-go/berth/internal/testkit"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
)

// tellsAsExplain has what a Look tells of a claim be what Explain tells.
func (w *world) tellsAsExplain(l *inspect.Look, name, claim string) {
	w.T.Helper()
	e := testkit.Must(w.look.Explain(ctx, keyspace.Sem, name, claim)).In(w.T)
	require.Contains(w.T, l.Asked, claim)
	e.Trouble = berth.Trouble{} // that of the name, which the Look has once
	require.Equal(w.T, e, l.Asked[claim].Explanation)
}

func TestAViewIsAskedForManyClaimsInOneReading(t *testing.T) {
	inWorld(t, func(w *world) {
		alpha := w.process("alpha")
		for range 105 {
			alpha.permit("", "gpu", 105, nil)
		}
		for range 130 {
			alpha.awaitPermit("", "gpu", 105, nil)
		}
		look, sent := w.counted()
		view := testkit.Must(look.View(keyspace.Sem, "gpu")).In(w.T)
		read := func(claims ...string) inspect.Look {
			return testkit.Must(view.Read(ctx, claims...)).In(w.T)
		}
		read()
		holders := testkit.Must(w.look.Holders(ctx, keyspace.Sem, "gpu", "", 200)).In(w.T)
		waiters := testkit.Must(w.look.Waiters(ctx, keyspace.Sem, "gpu", "", 200)).In(w.T)
		require.Len(w.T, waiters.Items, 130)

		claims := []string{"", "n.nobody", holders.Items[0].ID, holders.Items[104].ID, waiters.Items[0].ID, waiters.Items[0].ID, waiters.Items[129].ID}
		w.Advance(time.Second)
		sent()
		l := read(claims...)
		got := sent()
		require.LessOrEqual(w.T, len(got), 6, got)
		require.Len(w.T, l.Asked, 5)
		for claim := range l.Asked {
			w.tellsAsExplain(&l, "gpu", claim)
		}
		far := l.Asked[waiters.Items[129].ID]
		require.Nil(w.T, far.Hold)
		require.Equal(w.T, 129, far.Wait.Ahead)
		require.Equal(w.T, waiters.Items[129].Node, far.Wait.Node)
		require.Equal(w.T, holders.Items[104].Fence, l.Asked[holders.Items[104].ID].Hold.Fence, "behind those that were read")
		require.Equal(w.T, inspect.AskedClaim{Explanation: l.Asked["n.nobody"].Explanation}, l.Asked["n.nobody"])

		all := []string{holders.Items[0].ID, waiters.Items[0].ID}
		for _, c := range waiters.Items[105:] {
			all = append(all, c.ID)
		}
		w.Advance(time.Second)
		sent()
		l = read(all...)
		got = sent()
		require.LessOrEqual(w.T, len(got), 6, got)
		require.Len(w.T, l.Asked, 27)
		for _, claim := range all {
			w.tellsAsExplain(&l, "gpu", claim)
		}
	})
}

func TestAViewTellsWhereClaimsStandInAVeryLongLine(t *testing.T) {
	inWorld(t, func(w *world) {
		var claims []string
		for n := range 520 {
			claims = append(claims, fmt.Sprintf("n.%04d", n))
		}
		w.crowds("gpu", claims...)
		look, sent := w.counted()
		view := testkit.Must(look.View(keyspace.Sem, "gpu")).In(w.T)
		for range 3 {
			w.Advance(time.Second)
			sent()
			l := testkit.Must(view.Read(ctx, claims[50], claims[300], claims[519])).In(w.T)
			for _, claim := range []string{claims[50], claims[300], claims[519]} {
				w.tellsAsExplain(&l, "gpu", claim)
			}
			require.Equal(w.T, 518, l.Asked[claims[519]].Wait.Ahead, "the first one holds")
		}
		got := sent()
		require.LessOrEqual(w.T, len(got), 7+2+2+1, got)
	})
}

func TestAViewOfALockThatGoesFromNodeToNodeAsksTheSwarmInTurn(t *testing.T) {
	inWorld(t, func(w *world) {
		nodes := []*process{w.swarmed("alpha"), w.swarmed("beta"), w.swarmed("gamma")}
		look, sent := w.counted()
		view := testkit.Must(look.View(keyspace.Lock, "nightly")).In(w.T)
		swarm := 0
		var probed time.Time
		for n := range 30 {
			l := nodes[n%3].lock("nightly", "", &qlock.LockOptions{Lease: berth.Forever})
			w.Advance(time.Second)
			sent()
			seen := testkit.Must(view.Read(ctx)).In(w.T)
			require.Equal(w.T, l.Node(), seen.Holds[0].Node)
			got := sent()
			if n > 0 {
				require.LessOrEqual(w.T, len(got), 7, "%d: %v", n, got)
			}
			swarm-- // each reading asks the line for scores, too
			for _, c := range got {
				if c == "ZMSCORE" {
					swarm++
				}
			}
			if h := seen.Holds[0].Heard.At; h.After(probed) {
				probed = h
			}
			require.NoError(w.T, l.Release(ctx))
		}
		require.LessOrEqual(w.T, swarm, 30/5+1)
		require.GreaterOrEqual(w.T, swarm, 30/10)
		require.Less(w.T, time.Since(probed), 15*time.Second)
	})
}

func TestAViewAsksAnewWhoAnswersAfterARepeatedAttempt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.process("alpha").permit("", "gpu", 1, nil)
		reads := w.Process()
		look := testkit.Must(inspect.New(reads.Redis, inspect.Config{})).In(w.T)
		view := testkit.Must(look.View(keyspace.Sem, "gpu")).In(w.T)
		read := func() map[string]int {
			reads.Reset()
			testkit.Must(view.Read(ctx)).In(w.T)
			w.Advance(time.Second)
			return reads.Counts()
		}
		read()
		read()
		require.Zero(w.T, read()["INFO"])
		reads.Once("MGET", link.Refuse("LOADING Redis is loading the dataset in memory"))
		read()
		counts := read()
		require.Equal(w.T, []int{1, 1}, []int{counts["HELLO"], counts["INFO"]})
		require.Zero(w.T, read()["INFO"])
	})
}
