package integration

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/test/harness"
)

// A name that may be thin has one key, which may be of any type when a call comes. What is
// somebody else's there is told and left alone, a text as well as another type.
func TestATextThatIsNotOursInTheWay(t *testing.T) {
	w := shared(t)
	c := w.node(node.Config{})
	const fence, terms = "1700000000000000", "1 - r 60000 60000 0 0 0:0:0:"
	for what, command := range map[string][]string{
		"string":                        {"SET", "", "somebody's"},
		"string, empty":                 {"SET", "", ""},
		"string of 17 digits":           {"SET", "", fence + "0"},
		"string of words":               {"SET", "", "5 5 5.5 1 5"},
		"string that lacks a record":    {"SET", "", fence + " 1700000000000 a.1 1 "},
		"string with a broken fence":    {"SET", "", "1 1700000000000 a.1 " + terms},
		"string with a broken moment":   {"SET", "", fence + " 17 a.1 " + terms},
		"string of a claim with a line": {"SET", "", fence + " 1700000000000 a.1\n " + terms},
		"list":                          {"RPUSH", "", "somebody's"},
		"zset":                          {"ZADD", "", "1", "somebody's"},
		"set":                           {"SADD", "", "somebody's"},
	} {
		for verb, call := range verbs {
			s := w.sem(c, verb+", "+what, 1)
			key := w.stateKey(s.Name())
			command[1] = key
			w.do(command...)
			before := w.dumpsOf(s.Name())
			err := call(w.Within(patience), c, s)
			require.ErrorContains(t, err, key, "%s, %s", verb, what)
			require.ErrorContains(t, err, what[:3], "%s, %s: it says what is there", verb, what)
			require.Equal(t, before, w.dumpsOf(s.Name()), "%s, %s: something was written", verb, what)
			ttl, err := w.do("PTTL", key).AsInt64()
			require.NoError(t, err)
			require.EqualValues(t, -1, ttl, "%s, %s: somebody's key was given an expiry", verb, what)
		}
	}
}

// What takes the place of a thin hold ends it: its holder hears of that.
func TestATextThatIsNotOursInThePlaceOfAThinHold(t *testing.T) {
	w := sharedLocks(t)
	l := w.lock(w.locker(node.Config{Lease: 2 * time.Second}), nil)
	require.True(t, w.look(door).thin)
	w.do("SET", w.stateKey(door), "somebody's")
	w.Signalled("the holder to hear of it", l.Done())
	require.Error(t, l.Err())
	require.Error(t, l.Release(w.Within(patience)))
	text, err := w.do("GET", w.stateKey(door)).ToString()
	require.NoError(t, err)
	require.Equal(t, "somebody's", text)
	ttl, err := w.do("PTTL", w.stateKey(door)).AsInt64()
	require.NoError(t, err)
	require.EqualValues(t, -1, ttl)
}

var movesFor = flag.Duration("moves.for", 0,
	"how long the keys of TestSlotsThatMoveLoseNoHoldOfEitherForm move, of 1000 names of either form with a lease of 5 s; 0: fewer ones, for little longer than their lease")

// Two slots move, name after name, one with thin names and one with fat ones. All the while the holds
// are renewed as ever; thin ones are given back and taken, too, which takes one key.
func TestSlotsThatMoveLoseNoHoldOfEitherForm(t *testing.T) {
	t.Parallel()
	lease, each, during := safe, 4, safe+safe/5
	if *movesFor > 0 {
		lease, each, during = 5*time.Second, 1000, *movesFor
	}
	d, ns := harness.Cluster(t), harness.Namespace(t)
	space, err := keyspace.New(ns)
	require.NoError(t, err)
	w := &world{Patient: testkit.RealTime(t), admin: d.Client(t), ns: ns, space: space, kind: keyspace.Lock}
	holder := w.lockerOn(d.Client(t), node.Config{Lease: lease})
	other := w.lockerOn(d.Client(t), node.Config{Lease: lease})

	forms := map[bool][]string{true: w.inSlotOf("thin", each), false: w.inSlotOf("fat", each)}
	all := make([]*qlock.Lock, 2*each)
	w.eachOf(2*each, func(i int) (err error) {
		all[i], err = holder.Lock(w.Within(patience), forms[i < each][i%each], nil)
		return err
	})
	w.eachOf(each, func(i int) error { // it waits until there is a line, and leaves
		ctx, leave := context.WithCancel(w.Within(patience))
		defer leave()
		left := make(chan error, 1)
		go func() {
			_, err := other.Lock(ctx, forms[false][i], nil)
			left <- err
		}()
		zcard := func() (int64, error) {
			return w.admin.Do(ctx, w.admin.B().Zcard().Key(w.lineKey(forms[false][i])).Build()).AsInt64()
		}
		for {
			select {
			case err := <-left:
				return fmt.Errorf("a wait for a held lock has ended: %w", err)
			case <-time.After(10 * time.Millisecond):
			}
			if n, err := zcard(); err != nil {
				return err
			} else if n > 0 {
				leave()
				if err := <-left; err == nil {
					return fmt.Errorf("%q was granted twice", forms[false][i])
				}
				return nil
			}
		}
	})
	moves := map[bool]*harness.Move{}
	for thin, names := range forms {
		for _, name := range names {
			require.Equal(t, thin, w.look(name).thin, name)
		}
		moves[thin] = d.Move(t, "{"+names[0]+"}")
	}
	lives := func(when string) {
		lost := 0
		for _, l := range all {
			if l.Err() != nil {
				lost++
			}
		}
		require.Zero(t, lost, "of %d, %s", len(all), when)
	}
	again := func(i int) {
		require.NoError(t, all[i].Release(w.Within(patience)), all[i].Name())
		all[i], err = holder.TryLock(w.Within(patience), all[i].Name(), nil)
		require.NoError(t, err, "what was given back")
	}
	start := time.Now()
	for i := range each {
		<-time.After(time.Until(start.Add(during * time.Duration(i+1) / time.Duration(each+1))))
		moves[true].Part(t, w.stateKey(forms[true][i]))
		moves[false].Part(t, w.keysOf(forms[false][i])...)
		if i%3 == 0 {
			again(i)            // of what has moved
			again(each/2 + i/2) // and of what has not, as a rule
		}
		lives("while keys move")
	}
	<-time.After(time.Until(start.Add(during)))
	lives("when all keys have moved")
	for _, m := range moves {
		m.Finish(t)
	}
	t.Logf("%d holds of either form, with a lease of %v, while their slots moved for %v", each, lease, time.Since(start).Round(time.Millisecond))
	w.eachOf(2*each, func(i int) error { return all[i].Release(w.Within(patience)) })
}

// inSlotOf are so many names in one slot.
func (w *world) inSlotOf(name string, many int) []string {
	w.Helper()
	slot := func(name string) uint16 {
		get := w.admin.B().Get().Key(name).Build()
		return get.Slot()
	}
	names, of := []string{name}, slot(name)
	for n := 0; len(names) < many; n++ {
		if other := fmt.Sprint(name, n); slot(other) == of {
			names = append(names, other)
		}
	}
	return names
}
