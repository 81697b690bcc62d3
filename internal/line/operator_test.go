package line_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// claims acquires for an owner, of a name with a capacity, and returns the status.
func (a *node) claims(name string, capacity int, id, owner string) string {
	a.t.Helper()
	of, _, _ := strings.Cut(id, ".")
	r := engine.Record{Weight: 1, Wait: lease, Lease: lease, Phase: 'w', Node: of, Owner: owner}
	reply, err := a.Run(context.Background(), composed.Library().Script("semaphore_acquire"), scriptkit.Once, name,
		of, id, "1", line.Lane(0), state.FixedTerms(&r), strconv.Itoa(capacity), "stored")
	require.NoError(a.t, err)
	return reply.Status()
}

// forced are the claims that the node says were ended by force, sorted.
func (a *node) forced() (ids []string) {
	for _, ev := range a.events {
		if ev.Kind == observe.ForceReleased {
			ids = append(ids, ev.Claim)
		}
	}
	slices.Sort(ids)
	return ids
}

// holders are the claims that hold a name, sorted.
func (a *node) holders(name string) (ids []string) {
	a.t.Helper()
	for h, err := range a.Holders(context.Background(), name) {
		require.NoError(a.t, err)
		ids = append(ids, h.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestATargetThatCannotBeIsRefused(t *testing.T) {
	onServer(t, func(t *testing.T, a *node) {
		require.Equal(t, "granted", a.claims("x", 1, "b.1", "me"))
		for field, targets := range map[string][]berth.Target{
			"Target": {
				{},
				{All: true, Name: "x"},
				{All: true, Claim: "b.1"},
				{All: true, Owner: "me"},
				{All: true, Node: "b"},
				{Claim: "b.1"},
				{Claim: "b.1", Owner: "me"},
				{Claim: "b.1", Node: "b"},
			},
			"name": {{Name: "a{b"}, {Name: "a\nb", Claim: "b.1"}},
		} {
			for _, target := range targets {
				ended, err := a.ReleaseTarget(context.Background(), target, nil)
				require.Zero(t, ended, target)
				var bad *berth.ConfigError
				require.ErrorAs(t, err, &bad, target)
				require.Equal(t, field, bad.Field, target)
			}
		}
		require.Equal(t, []string{"b.1"}, a.holders("x"))
	})
}

// Of x the claim b.1 holds and c.2 waits, of y c.1 holds and b.2 waits. The owner of b.1 and c.1
// is "me", that of c.2 is "you", and b.2 is its own.
func TestATargetMeansWhatMatchesAllOfIt(t *testing.T) {
	for what, test := range map[string]struct {
		target berth.Target
		ended  []string
		err    error
		x, y   string // who holds them then
	}{
		"a name: what is held of it":       {berth.Target{Name: "x"}, []string{"b.1"}, nil, "c.2", "c.1"},
		"a name that nobody holds":         {berth.Target{Name: "z"}, nil, berth.ErrNotHeld, "b.1", "c.1"},
		"a claim that holds":               {berth.Target{Name: "x", Claim: "b.1"}, []string{"b.1"}, nil, "c.2", "c.1"},
		"a claim that waits":               {berth.Target{Name: "x", Claim: "c.2"}, []string{"c.2"}, nil, "b.1", "c.1"},
		"a claim of another name":          {berth.Target{Name: "y", Claim: "b.1"}, nil, berth.ErrNotHeld, "b.1", "c.1"},
		"a claim and its node":             {berth.Target{Name: "x", Claim: "b.1", Node: "b"}, []string{"b.1"}, nil, "c.2", "c.1"},
		"a claim and another node":         {berth.Target{Name: "x", Claim: "b.1", Node: "c"}, nil, berth.ErrNotHeld, "b.1", "c.1"},
		"a claim and its owner":            {berth.Target{Name: "x", Claim: "b.1", Owner: "me"}, []string{"b.1"}, nil, "c.2", "c.1"},
		"a claim that waits and its owner": {berth.Target{Name: "x", Claim: "c.2", Owner: "you"}, []string{"c.2"}, nil, "b.1", "c.1"},
		"a claim and another owner":        {berth.Target{Name: "x", Claim: "b.1", Owner: "you"}, nil, berth.ErrNotHeld, "b.1", "c.1"},
		"an owner, of all names":           {berth.Target{Owner: "me"}, []string{"b.1", "c.1"}, nil, "c.2", "b.2"},
		"an owner, of a name":              {berth.Target{Name: "y", Owner: "me"}, []string{"c.1"}, nil, "b.1", "b.2"},
		"a claim is its own owner":         {berth.Target{Owner: "b.2"}, []string{"b.2"}, nil, "b.1", "c.1"},
		"an owner of nothing":              {berth.Target{Owner: "nobody"}, nil, nil, "b.1", "c.1"},
		"an owner of nothing, of a name":   {berth.Target{Name: "y", Owner: "you"}, nil, berth.ErrNotHeld, "b.1", "c.1"},
		"a node, of all names":             {berth.Target{Node: "b"}, []string{"b.1", "b.2"}, nil, "c.2", "c.1"},
		"a node, of a name":                {berth.Target{Name: "y", Node: "b"}, []string{"b.2"}, nil, "b.1", "c.1"},
		"a node and an owner":              {berth.Target{Node: "c", Owner: "me"}, []string{"c.1"}, nil, "b.1", "b.2"},
		"a node of nothing":                {berth.Target{Node: "d"}, nil, nil, "b.1", "c.1"},
		"all":                              {berth.Target{All: true}, []string{"b.1", "c.1"}, nil, "c.2", "b.2"},
	} {
		t.Run(what, func(t *testing.T) {
			onServer(t, func(t *testing.T, a *node) {
				require.Equal(t, "granted", a.claims("x", 1, "b.1", "me"))
				require.Equal(t, "granted", a.claims("y", 1, "c.1", "me"))
				require.Equal(t, "queued", a.claims("y", 1, "b.2", ""))
				require.Equal(t, "queued", a.claims("x", 1, "c.2", "you"))
				ended, err := a.ReleaseTarget(context.Background(), test.target, nil)
				require.ErrorIs(t, err, test.err)
				require.Equal(t, len(test.ended), ended)
				require.Equal(t, test.ended, a.forced())
				require.Equal(t, []string{test.x}, a.holders("x"))
				require.Equal(t, []string{test.y}, a.holders("y"))
			})
		})
	}
}

// Where a node both holds a name and waits for it, nothing of it is granted what the hold leaves.
func TestANodeGetsNothingOfWhatItsHoldLeaves(t *testing.T) {
	onServer(t, func(t *testing.T, a *node) {
		a.claims("x", 1, "b.1", "")
		a.claims("x", 1, "b.2", "")
		a.claims("x", 1, "c.1", "")
		ended, err := a.ReleaseTarget(context.Background(), berth.Target{Node: "b"}, nil)
		require.NoError(t, err)
		require.Equal(t, 2, ended)
		require.Equal(t, []string{"c.1"}, a.holders("x"))
		require.Equal(t, []string{"b.2", "b.1"}, []string{a.events[0].Claim, a.events[1].Claim})
	})
}

// A name alone means those who hold it when the call comes, however many they are.
func TestWhoGetsANameMeanwhileIsNotMeant(t *testing.T) {
	onServer(t, func(t *testing.T, a *node) {
		const many = 120
		for i := range 2 * many {
			a.claims("x", many, fmt.Sprintf("b.%03d", i), "")
		}
		ended, err := a.ReleaseTarget(context.Background(), berth.Target{Name: "x"}, nil)
		require.NoError(t, err)
		require.Equal(t, many, ended)
		holders := a.holders("x")
		require.Len(t, holders, many)
		require.Equal(t, fmt.Sprintf("b.%d", many), holders[0])
	})
}

func TestAClaimWhoseTimeHasPassedIsSaidToHaveExpired(t *testing.T) {
	onServer(t, func(t *testing.T, a *node) {
		a.claims("x", 1, "b.1", "")
		time.Sleep(lease)
		ended, err := a.ReleaseTarget(context.Background(), berth.Target{Name: "x", Claim: "b.1"}, nil)
		require.ErrorIs(t, err, berth.ErrExpired)
		require.Zero(t, ended)
	})
}

func TestWhatIsDamagedDoesNotKeepTheOthers(t *testing.T) {
	onServer(t, func(t *testing.T, a *node) {
		ctx := context.Background()
		for _, id := range []string{"b.1", "c.1", "c.2", "c.3"} { // two hold, two wait
			a.claims("x", 2, id, "")
		}
		for _, id := range []string{"b.1", "c.2"} {
			const key = "ns:sem:{x}:state"
			record, err := a.redis.Do(ctx, a.redis.B().Hget().Key(key).Field("c:"+id).Build()).ToString()
			require.NoError(t, err)
			damaged := a.redis.B().Hset().Key(key).FieldValue().FieldValue("c:"+id, record+"nothing of Berth's")
			require.NoError(t, a.redis.Do(ctx, damaged.Build()).Error())
		}
		ended, err := a.ReleaseTarget(ctx, berth.Target{Node: "c"}, nil)
		require.ErrorIs(t, err, state.ErrDamaged)
		require.ErrorContains(t, err, `"b.1"`)
		require.ErrorContains(t, err, `"c.2"`)
		require.Equal(t, []string{"c.1", "c.3"}, a.forced())
		require.Equal(t, 2, ended)
	})
}

// What is held of a name ends in one step where the kind can; nothing else does.
func TestOnlyANameAloneAndAllEndNamesAsAWhole(t *testing.T) {
	onServer(t, func(t *testing.T, a *node) {
		ctx := context.Background()
		for _, name := range []string{"x", "y", "z"} {
			a.claims(name, 1, "b."+name, "me")
		}
		var names []string
		whole := func(_ context.Context, name string) (int, error) {
			names = append(names, name)
			switch name {
			case "y":
				return 3, nil
			case "z":
				return 1, errors.New("of z")
			}
			return 0, nil
		}
		ended, err := a.ReleaseTarget(ctx, berth.Target{Name: "y"}, whole)
		require.NoError(t, err)
		require.Equal(t, 3, ended)
		_, err = a.ReleaseTarget(ctx, berth.Target{Name: "x"}, whole)
		require.ErrorIs(t, err, berth.ErrNotHeld)
		ended, err = a.ReleaseTarget(ctx, berth.Target{Name: "z"}, whole)
		require.EqualError(t, err, "of z")
		require.Equal(t, 1, ended)
		require.Equal(t, []string{"y", "x", "z"}, names)

		names = nil
		ended, err = a.ReleaseTarget(ctx, berth.Target{All: true}, whole)
		require.EqualError(t, err, "of z")
		require.Equal(t, 4, ended)
		slices.Sort(names)
		require.Equal(t, []string{"x", "y", "z"}, names, "none keeps the others")

		names = nil
		for _, target := range []berth.Target{
			{Name: "x", Claim: "b.0"}, {Name: "x", Owner: "you"}, {Name: "x", Node: "c"}, {Owner: "you"}, {Node: "c"},
		} {
			_, _ = a.ReleaseTarget(ctx, target, whole)
		}
		require.Empty(t, names)
	})
}

func TestASweepOfNamesIsOfThoseGivenOrOfAll(t *testing.T) {
	onServer(t, func(t *testing.T, a *node) {
		ctx := context.Background()
		for _, name := range []string{"x", "y", "z"} {
			a.claims(name, 1, "b.1", "")
			a.claims(name, 1, "b.2", "")
		}
		time.Sleep(lease)
		for _, step := range []struct {
			names   []string
			dropped int
			refused bool
		}{
			{[]string{"x", "a{b"}, 0, true}, {[]string{"x"}, 2, false}, {[]string{"x", "w"}, 0, false}, {nil, 4, false}, {nil, 0, false},
		} {
			dropped, err := a.SweepNames(ctx, step.names...)
			require.Equal(t, step.refused, errors.Is(err, berth.ErrInvalidConfig), err)
			require.Equal(t, step.dropped, dropped, step.names)
		}
	})
}
