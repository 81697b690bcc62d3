package line_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// claims acquires for an owner, of a name with a capacity, and returns the status.
func (a *process) claims(name string, capacity int, id, owner string) string {
	a.t.Helper()
	of, _, _ := strings.Cut(id, ".")
	r := engine.Record{Weight: 1, Wait: lease, Lease: lease, Phase: 'w', Node: of, Owner: owner}
	says := line.Args{Node: of, Channel: "berth:wake:", Name: name, Linger: time.Minute.Milliseconds()}
	reply, err := a.Run(context.Background(), composed.Library().Script("semaphore_acquire"), scriptkit.Once, name,
		says.Acquire(id, &r, "1", "stored", state.Calm(capacity))...)
	require.NoError(a.t, err)
	return reply.Status()
}

// release is ReleaseTarget, of semaphores where a name is given without its kind.
func (a *process) release(ctx context.Context, target berth.Target) (int, error) {
	if target.Name != "" {
		target.Kind = cmp.Or(target.Kind, keyspace.Sem)
	}
	return a.p.ReleaseTarget(ctx, target)
}

// ends is release, which ends so many, and returns such an error.
func (a *process) ends(target berth.Target, want int, wantErr error) error {
	a.t.Helper()
	ended, err := a.release(context.Background(), target)
	require.ErrorIs(a.t, err, wantErr, "%v", target)
	require.Equal(a.t, want, ended, "%v", target)
	return err
}

// forced are the claims that the node says were ended by force, sorted.
func (a *process) forced() (ids []string) {
	for _, ev := range a.events {
		if ev.Kind == observe.ForceReleased {
			ids = append(ids, ev.Claim)
		}
	}
	slices.Sort(ids)
	return ids
}

// holders are the claims that hold a name, sorted.
func (a *process) holders(name string) (ids []string) {
	a.t.Helper()
	for h, err := range a.Holders(context.Background(), name) {
		require.NoError(a.t, err)
		ids = append(ids, h.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestATargetThatCannotBeIsRefused(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
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
				{Kind: keyspace.Sem},
				{Kind: keyspace.Sem, Claim: "b.1"},
			},
			"Target.Kind": {{Name: "x"}, {Name: "x", Claim: "b.1"}, {Kind: "semaphore", Name: "x"}, {Kind: keyspace.Once, All: true}},
			"name":        {{Kind: keyspace.Sem, Name: "a{b"}, {Kind: keyspace.Sem, Name: "a\nb", Claim: "b.1"}},
		} {
			for _, target := range targets {
				ended, err := a.p.ReleaseTarget(context.Background(), target)
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
			onServer(t, func(t *testing.T, a *process) {
				require.Equal(t, "granted", a.claims("x", 1, "b.1", "me"))
				require.Equal(t, "granted", a.claims("y", 1, "c.1", "me"))
				require.Equal(t, "queued", a.claims("y", 1, "b.2", ""))
				require.Equal(t, "queued", a.claims("x", 1, "c.2", "you"))
				_ = a.ends(test.target, len(test.ended), test.err)
				require.Equal(t, test.ended, a.forced())
				require.Equal(t, []string{test.x}, a.holders("x"))
				require.Equal(t, []string{test.y}, a.holders("y"))
			})
		})
	}
}

// Where a node both holds a name and waits for it, nothing of it is granted what the hold leaves.
func TestANodeGetsNothingOfWhatItsHoldLeaves(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		a.claims("x", 1, "b.1", "")
		a.claims("x", 1, "b.2", "")
		a.claims("x", 1, "c.1", "")
		_ = a.ends(berth.Target{Node: "b"}, 2, nil)
		require.Equal(t, []string{"c.1"}, a.holders("x"))
		require.Equal(t, []string{"b.2", "b.1"}, []string{a.events[0].Claim, a.events[1].Claim})
	})
}

// A name alone means those who hold it when the call comes, however many they are.
func TestWhoGetsANameMeanwhileIsNotMeant(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		const many = 120
		for i := range 2 * many {
			a.claims("x", many, fmt.Sprintf("b.%03d", i), "")
		}
		_ = a.ends(berth.Target{Name: "x"}, many, nil)
		holders := a.holders("x")
		require.Len(t, holders, many)
		require.Equal(t, fmt.Sprintf("b.%d", many), holders[0])
	})
}

func TestAClaimWhoseTimeHasPassedIsSaidToHaveExpired(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		a.claims("x", 1, "b.1", "")
		time.Sleep(lease)
		_ = a.ends(berth.Target{Name: "x", Claim: "b.1"}, 0, berth.ErrExpired)
	})
}

func TestWhatIsDamagedDoesNotKeepTheOthers(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		for _, id := range []string{"b.1", "c.1", "c.2", "c.3"} { // two hold, two wait
			a.claims("x", 2, id, "")
		}
		for _, id := range []string{"b.1", "c.2"} {
			const key = "ns:sem:{x}:state"
			record, err := a.do("HGET", key, "c:"+id).ToString()
			require.NoError(t, err)
			a.do("HSET", key, "c:"+id, record+"nothing of Berth's")
		}
		err := a.ends(berth.Target{Node: "c"}, 2, state.ErrDamaged)
		require.ErrorContains(t, err, `"b.1"`)
		require.ErrorContains(t, err, `"c.2"`)
		require.Equal(t, []string{"c.1", "c.3"}, a.forced())
	})
}

// A lock that is held ends in one step, with all its entries; nothing else does.
func TestOnlyANameAloneAndAllEndLocksAsAWhole(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		ctx := context.Background()
		locks := a.p.Face(keyspace.Lock)
		for _, id := range []string{"b.1", "b.2"} { // of one owner, which works through
			for _, name := range []string{"x", "y", "z"} {
				r := engine.Record{Weight: 1, Wait: lease, Lease: lease, Phase: 'w', Node: "b", Owner: "me"}
				says := line.Args{Node: "b", Channel: "berth:wake:", Name: name, Linger: time.Minute.Milliseconds()}
				_, err := locks.Run(ctx, composed.LockAcquire, scriptkit.Once, name, says.Acquire(id, &r, "0", "-", "work queued 0 me")...)
				require.NoError(t, err)
			}
		}
		lock := func(name string) berth.Target { return berth.Target{Kind: keyspace.Lock, Name: name} }
		for _, target := range []berth.Target{{Owner: "you"}, {Node: "c"}, {Claim: "b.0"}} {
			target.Kind, target.Name = keyspace.Lock, "x"
			_ = a.ends(target, 0, berth.ErrNotHeld)
		}
		require.Empty(t, a.events)
		_ = a.ends(lock("y"), 2, nil)
		_ = a.ends(lock("y"), 0, berth.ErrNotHeld)
		require.Len(t, a.events, 1)
		require.Equal(t, []any{observe.ForceReleased, "y", "", 2}, []any{a.events[0].Kind, a.events[0].Name, a.events[0].Claim, a.events[0].Count})

		a.claims("x", 1, "b.3", "me") // a semaphore of that name
		a.do("HSET", "ns:lock:{z}:state", "v", "9 of another release")
		_ = a.ends(berth.Target{Kind: keyspace.Lock, All: true}, 2, berth.ErrIncompatible) // none keeps the others
		require.Equal(t, []string{"b.3"}, a.holders("x"), "it is no lock")
		require.Len(t, a.events, 2)

		a.events = nil
		_ = a.ends(berth.Target{Owner: "me"}, 1, berth.ErrIncompatible)
		require.Equal(t, []string{"b.3"}, a.forced())
	})
}

func TestASweepOfNamesIsOfThoseGivenOrOfAll(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
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

// A release of many ends with the call, or with the server, and says so once.
func TestAReleaseOfManyEndsWithItsContext(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		for i := range 50 {
			a.claims("x", 50, fmt.Sprintf("b.%03d", i), "me")
			a.claims(fmt.Sprintf("y%d", i), 1, "b.1", "me")
		}
		for _, target := range []berth.Target{{Name: "x"}, {Name: "x", Owner: "me"}, {Owner: "me"}, {All: true}} {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			ended, err := a.release(ctx, target)
			require.ErrorIs(t, err, context.Canceled)
			require.Zero(t, ended)
			require.LessOrEqual(t, strings.Count(err.Error(), "canceled"), len(line.Kinds), "%v: %v", target, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		a.told = func() { cancel() } // with the first
		ended, err := a.release(ctx, berth.Target{Name: "x"})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, ended)
		require.Equal(t, 1, strings.Count(err.Error(), "canceled"), err)
	})
}

// refusing answers READONLY to scripts, once told to: to all, and to what is read, or to one.
type refusing struct {
	rueidis.Client
	now  bool
	only string // its name, "" for all
}

// before has the client stand before another one.
func (c *refusing) before(redis rueidis.Client) rueidis.Client {
	c.Client = redis
	return c
}

func (c *refusing) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if words := cmd.Commands(); c.now && strings.HasPrefix(words[0], "EVAL") &&
		(c.only == "" || words[1] == composed.Library().Script(c.only).SHA) {
		return c.Client.Do(ctx, c.B().Eval().Script("return redis.error_reply('READONLY a replica')").Numkeys(0).Build())
	}
	return c.Client.Do(ctx, cmd)
}

func (c *refusing) DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult {
	if c.now && c.only == "" {
		for i := range multi {
			multi[i] = c.B().Eval().Script("return redis.error_reply('READONLY a replica')").Numkeys(0).Build()
		}
	}
	return c.Client.DoMulti(ctx, multi...)
}

// Retry is for each call; that of a name that cannot be reached is not paid for each claim.
func TestAReleaseOfManyEndsWithTheServer(t *testing.T) {
	client := &refusing{}
	through(t, client.before, func(t *testing.T, a *process) {
		for _, target := range []berth.Target{{Name: "x"}, {Name: "y", Node: "b"}} {
			for i := range 50 {
				a.claims(target.Name, 50, fmt.Sprintf("b.%03d", i), "me")
			}
			a.told = func() { client.now = true }
			start := time.Now()
			_ = a.ends(target, 1, berth.ErrUnavailable)
			require.Less(t, time.Since(start), 15*time.Second)

			start = time.Now()
			_ = a.ends(target, 0, berth.ErrUnavailable)
			require.Less(t, time.Since(start), 15*time.Second)
			client.now = false
		}
	})
}

// What a call has ended counts, even if the sweep that follows fails.
func TestWhatAReleaseHasEndedCountsBesideTheErrorOfItsSweep(t *testing.T) {
	client := &refusing{only: "semaphore_sweep"}
	through(t, client.before, func(t *testing.T, a *process) {
		const many = 250
		for _, target := range []berth.Target{{Name: "x", Claim: "c.1"}, {Name: "y", Node: "c"}} {
			client.now = false
			for i := range many {
				a.claims(target.Name, many+1, fmt.Sprintf("b.%03d", i), "")
			}
			time.Sleep(lease - time.Millisecond)
			a.claims(target.Name, many+1, "c.1", "")
			time.Sleep(time.Millisecond)
			client.now = true
			_ = a.ends(target, 1, berth.ErrUnavailable)
		}
		require.Equal(t, []string{"c.1", "c.1"}, a.forced())
	})
}
