package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// A name that may be thin has one key, which may be of any type when a call comes. What is
// somebody else's there is told and left alone, a text as well as another type.
func TestATextThatIsNotOursInTheWay(t *testing.T) {
	b := shared(t)
	c := b.client(semaphore.Config{})
	const fence, tail = "1700000000000000", "1 - r 60000 60000 0 0 0:0:0:"
	for what, command := range map[string][]string{
		"string":                        {"SET", "", "somebody's"},
		"string, empty":                 {"SET", "", ""},
		"string of 17 digits":           {"SET", "", fence + "0"},
		"string of words":               {"SET", "", "5 5 5.5 1 5"},
		"string that lacks a record":    {"SET", "", fence + " 1700000000000 a.1 1 "},
		"string with a broken fence":    {"SET", "", "1 1700000000000 a.1 " + tail},
		"string with a broken moment":   {"SET", "", fence + " 17 a.1 " + tail},
		"string of a claim with a line": {"SET", "", fence + " 1700000000000 a.1\n " + tail},
		"list":                          {"RPUSH", "", "somebody's"},
		"zset":                          {"ZADD", "", "1", "somebody's"},
		"set":                           {"SADD", "", "somebody's"},
	} {
		for verb, call := range verbs {
			s := b.sem(c, verb+", "+what, 1)
			key := b.stateKey(s.Name())
			command[1] = key
			b.do(command...)
			before := b.dumpsOf(s.Name())
			err := call(b.within(patience), c, s)
			require.ErrorContains(t, err, key, "%s, %s", verb, what)
			require.ErrorContains(t, err, what[:3], "%s, %s: it says what is there", verb, what)
			require.Equal(t, before, b.dumpsOf(s.Name()), "%s, %s: something was written", verb, what)
			ttl, err := b.do("PTTL", key).AsInt64()
			require.NoError(t, err)
			require.EqualValues(t, -1, ttl, "%s, %s: somebody's key was given an expiry", verb, what)
		}
	}
}

// What takes the place of a thin hold ends it: its holder hears of that.
func TestATextThatIsNotOursInThePlaceOfAThinHold(t *testing.T) {
	b := sharedLocks(t)
	l := b.lock(b.locker(qlock.Config{Lease: 2 * time.Second}), nil)
	require.True(t, b.look(door).thin)
	b.do("SET", b.stateKey(door), "somebody's")
	b.signalled("the holder to hear of it", l.Done())
	require.Error(t, l.Err())
	require.Error(t, l.Release(b.within(patience)))
	text, err := b.do("GET", b.stateKey(door)).ToString()
	require.NoError(t, err)
	require.Equal(t, "somebody's", text)
	ttl, err := b.do("PTTL", b.stateKey(door)).AsInt64()
	require.NoError(t, err)
	require.EqualValues(t, -1, ttl)
}

// While slots move, holds with a lease of 5 s are renewed as ever, of names in both
// forms; thin ones are given back and taken, too, which takes one key.
func TestSlotsThatMoveLoseNoHoldOfEitherForm(t *testing.T) {
	t.Parallel()
	const lease, each = 5 * time.Second, 2
	d, ns := harness.Cluster(t), harness.Namespace(t)
	space, err := keyspace.New(ns)
	require.NoError(t, err)
	b := &bed{T: t, admin: d.Client(t), ns: ns, space: space, kind: keyspace.Lock}
	holder := b.lockerOn(d.Client(t), qlock.Config{Lease: lease})
	other := b.lockerOn(d.Client(t), qlock.Config{Lease: lease})

	thin, all := map[string]bool{}, map[string]*qlock.Lock{}
	for n := range 2 * each {
		name := fmt.Sprint("held ", n)
		l, err := holder.Lock(b.within(patience), name, nil)
		require.NoError(t, err)
		if thin[name] = n < each; !thin[name] {
			ctx, leave := context.WithCancel(b.within(patience))
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				_, _ = other.Lock(ctx, name, nil)
			}()
			b.awaitInLine(name, 1, func() bool { return false })
			leave()
			b.signalled("the claim to leave", gone)
		}
		require.Equal(t, thin[name], b.look(name).thin)
		all[name] = l
	}
	var moves []*harness.Move
	for name := range all {
		moves = append(moves, d.Move(t, "{"+name+"}"))
	}
	lives := func(when string, during time.Duration) {
		<-time.After(during)
		for name, l := range all {
			require.NoError(t, l.Err(), "%s, %s", name, when)
		}
	}
	lives("before any key has moved", lease/2)
	for _, m := range moves {
		m.Keys(t)
	}
	lives("when all keys have moved", lease+lease/2)
	for name := range all {
		if thin[name] {
			require.NoError(t, all[name].Release(b.within(patience)), name)
			all[name], err = holder.TryLock(b.within(patience), name, nil)
			require.NoError(t, err, name)
		}
	}
	for _, m := range moves {
		m.Finish(t)
	}
	lives("when the slots have moved", lease/2)
	for name, l := range all {
		require.NoError(t, l.Release(b.within(patience)), name)
	}
}
