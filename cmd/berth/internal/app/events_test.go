package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// told are the events as a line each, as short as may be.
func told(t *testing.T, events []eventDocument) (lines []string) {
	t.Helper()
	for _, e := range events {
		require.False(t, e.At.IsZero())
		line := string(e.Kind) + " " + e.Name + " " + e.Event
		for _, more := range []string{e.Claim, e.Why} {
			if more != "" {
				line += " " + more
			}
		}
		if e.Claim == "" && e.Count > 0 {
			line += " " + string(rune('0'+e.Count))
		}
		lines = append(lines, line)
	}
	return lines
}

func TestWhatHasChangedBetweenTwoLooks(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	hold := func(id string, at time.Time) *berth.Holder { return &berth.Holder{ID: id, Granted: at} }
	wait := func(id string, at time.Time) berth.Waiter { return berth.Waiter{ID: id, Since: at} }
	busy, stuck := berth.Trouble{Level: berth.LevelBusy}, berth.Trouble{Level: berth.LevelStuck, Why: string(inspect.InCycle)}
	before := noon.Add(-time.Hour)
	lock := berth.Name{
		Kind: keyspace.Lock, Name: "a", Capacity: 1, Held: 1, Holders: 3, Waiting: 2, Fence: 5, Longest: hold("h1", before),
		First: []berth.Waiter{wait("w1", before)}, Trouble: busy, At: noon,
	}
	of := func(n berth.Name, change func(n *berth.Name)) berth.Name {
		n.At = n.At.Add(2 * time.Second)
		change(&n)
		return n
	}
	sem := berth.Name{Kind: keyspace.Sem, Name: "s", Capacity: 9, Held: 5, Holders: 4, Waiting: 3, Fence: 5, Trouble: busy, At: noon}
	pool := berth.Name{Kind: keyspace.Pool, Name: "p", Capacity: 9, Held: 2, Holders: 2, Fence: 5, Trouble: busy, At: noon}
	for name, test := range map[string]struct {
		was, is berth.Name
		want    []string
	}{
		"nothing":     {lock, of(lock, func(n *berth.Name) { n.Holders, n.Oldest = 4, time.Hour }), nil},
		"handed on":   {lock, of(lock, func(n *berth.Name) { n.Fence, n.Holders, n.Waiting, n.Longest = 6, 1, 1, hold("w1", n.At) }), []string{"granted w1", "released 1"}},
		"released":    {lock, of(lock, func(n *berth.Name) { n.Held, n.Holders, n.Waiting, n.Longest = 0, 0, 2, nil }), []string{"released 1"}},
		"one comes":   {lock, of(lock, func(n *berth.Name) { n.Waiting, n.First = 3, append(n.First, wait("w2", n.At)) }), []string{"waits w2"}},
		"one leaves":  {lock, of(lock, func(n *berth.Name) { n.Waiting = 1 }), []string{"gave up 1"}},
		"one is dead": {lock, of(lock, func(n *berth.Name) { n.Dead = 1 }), []string{"gave up 1"}},
		"paused":      {lock, of(lock, func(n *berth.Name) { n.Pause = &berth.Pause{Reason: "why"} }), []string{"paused why"}},
		"unpaused":    {of(lock, func(n *berth.Name) { n.Pause = &berth.Pause{} }), of(of(lock, func(*berth.Name) {}), func(*berth.Name) {}), []string{"unpaused"}},
		"stuck":       {lock, of(lock, func(n *berth.Name) { n.Trouble = stuck }), []string{"stuck cycle"}},
		"no more":     {of(lock, func(n *berth.Name) { n.Trouble = stuck }), of(of(lock, func(*berth.Name) {}), func(*berth.Name) {}), []string{"no longer stuck"}},
		"several":     {sem, of(sem, func(n *berth.Name) { n.Fence, n.Holders, n.Waiting = 8, 6, 5 }), []string{"waits 2", "granted 2"}},
		"others":      {sem, of(sem, func(n *berth.Name) { n.Fence = 6; n.Waiting = 2 }), []string{"granted 1", "released 1"}},
		"a rest ends": {pool, of(pool, func(n *berth.Name) { n.Fence = 9 }), nil},
		"a resource":  {pool, of(pool, func(n *berth.Name) { n.Fence, n.Held, n.Holders = 9, 3, 3 }), []string{"granted 1"}},
		"it is damaged": {sem, of(sem, func(n *berth.Name) {
			*n = berth.Name{Kind: n.Kind, Name: n.Name, At: n.At, Err: berth.ErrIncompatible, Trouble: berth.Trouble{Level: berth.LevelStuck, Why: string(inspect.Incompatible)}}
		}), []string{"stuck newer form"}},
	} {
		var want []string
		for _, line := range test.want {
			want = append(want, string(test.was.Kind)+" "+test.was.Name+" "+line)
		}
		require.Equal(t, want, told(t, changes(test.was, test.is, true)), name)
	}

	f := following{names: map[berth.Ref]berth.Name{}}
	look := func(partial bool, at time.Time, all ...berth.Name) []string {
		return told(t, f.look(inspect.Page[berth.Name]{Items: all, At: at, Partial: partial}))
	}
	later := noon.Add(2 * time.Second)
	require.Equal(t, []string{"lock b stuck cycle"}, look(false, noon, lock, berth.Name{Kind: keyspace.Lock, Name: "b", At: noon, Trouble: stuck}), "what is bad already")
	require.Equal(t, []string{"lock b no longer stuck", "sem s granted new"}, look(false, later, lock,
		of(sem, func(n *berth.Name) { n.Longest = hold("new", later) })), "of others what is new")
	require.Equal(t, []string{"lock a released 1", "lock a gave up 2"}, look(false, later.Add(time.Second),
		of(sem, func(n *berth.Name) { n.Holders = 1 })), "one that was not read anew has not changed")
	require.Empty(t, look(true, later.Add(time.Minute)), "it may have been left out")
	f.kinds = []keyspace.Kind{keyspace.Pool}
	require.Empty(t, look(false, later, lock))
}
