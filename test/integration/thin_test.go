package integration

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// verbs are all calls that touch the keys of a name.
var verbs = map[string]func(ctx context.Context, n *node.Node, s *semaphore.Semaphore) error{
	"Acquire": func(ctx context.Context, _ *node.Node, s *semaphore.Semaphore) error {
		return testkit.Second(s.Acquire(ctx, nil))
	},
	"TryAcquire": func(ctx context.Context, _ *node.Node, s *semaphore.Semaphore) error {
		return testkit.Second(s.TryAcquire(ctx, nil))
	},
	"Resize": func(ctx context.Context, n *node.Node, s *semaphore.Semaphore) error {
		return semaphore.NewOperator(n).Resize(ctx, s.Name(), 5, &semaphore.ResizeOptions{Create: true})
	},
	"Release": func(ctx context.Context, n *node.Node, s *semaphore.Semaphore) error {
		return testkit.Second(n.Operator().Release(ctx, berth.Target{Kind: keyspace.Sem, Name: s.Name(), Claim: "nobody"}))
	},
}

// A name that may be thin has one key, which may be of any type when a call comes. What is
// somebody else's there is told and left alone, a text as well as another type.
func TestATextThatIsNotOursInTheWay(t *testing.T) {
	w := shared(t)
	c := w.node(node.Config{})
	const fence, terms = "1700000000000000", "- 1 r 60000 60000 0 0 0:0:0:"
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
			w.staysForGood(key)
		}
	}
}

// What takes the place of a thin hold ends it: its holder hears of that.
func TestATextThatIsNotOursInThePlaceOfAThinHold(t *testing.T) {
	w := shared(t).of(keyspace.Lock)
	h := w.hold(w.use(node.Config{Lease: 2 * time.Second}), terms{})
	require.True(t, w.look(door).thin)
	w.do("SET", w.stateKey(door), "somebody's")
	before := w.dumpsOf(door)
	w.Signalled("the holder to hear of it", h.Done())
	require.Error(t, h.Err())
	require.Error(t, h.Release(w.Within(patience)))
	require.Equal(t, before, w.dumpsOf(door))
	w.staysForGood(w.stateKey(door))
}

// staysForGood checks that somebody's key was given no expiry.
func (w *world) staysForGood(key string) {
	w.Helper()
	ttl, err := w.do("PTTL", key).AsInt64()
	require.NoError(w, err)
	require.EqualValues(w, -1, ttl, "somebody's key was given an expiry")
}

// A key of another type, somebody else's, in the place of one of a pool's.
func TestKeysOfAnotherTypeAreLeftAlone(t *testing.T) {
	w := shared(t).of(keyspace.Pool)
	p, ctx := w.pool(node.Config{}), w.Within(2*patience)
	for i, key := range w.keysOf(proxies) {
		for _, there := range []bool{false, true} {
			if there {
				w.add(p, "r0", "r1")
				w.do("DEL", key)
			}
			w.do("SET", key, "somebody's")
			before := w.do("DUMP", key)
			refused := 0
			for what, call := range map[string]func() error{
				"add":     func() error { _, err := p.Add(ctx, []string{"r0"}, nil); return err },
				"try":     func() error { _, err := p.TryAllocate(ctx, nil); return err },
				"rest":    func() error { return p.Rest(ctx, "r0", time.Hour, "", nil) },
				"remove":  func() error { _, err := p.Remove(ctx, []string{"r0"}); return err },
				"inspect": func() error { _, err := p.ops.Inspect(ctx, proxies); return err },
			} {
				if err := call(); err != nil && what != "try" {
					require.NotErrorIs(t, err, context.DeadlineExceeded, what)
					refused++
				}
				require.Equal(t, before, w.do("DUMP", key), "%s has replaced key %d", what, i)
			}
			require.Positive(t, refused, "nothing is said of key %d", i)
			w.do(append([]string{"DEL"}, w.keysOf(proxies)...)...)
		}
	}
	w.add(p, "r0")
	w.release(w.allocate(p, nil))
	w.allFree(p, 1)
}

var movesFor = flag.Duration("moves.for", 0,
	"how long the keys of TestSlotsThatMoveLoseNoHoldOfEitherForm move, of 1000 names of either form with a lease of 5 s; 0: fewer ones, for little longer than their lease")

// Two slots move, name after name, one with thin names and one with fat ones. All the while the holds
// are renewed as ever; thin ones are given back and taken, too, which takes one key.
func TestSlotsThatMoveLoseNoHoldOfEitherForm(t *testing.T) {
	lease, each, during := safe, 4, safe+safe/5
	if *movesFor > 0 {
		lease, each, during = 5*time.Second, 1000, *movesFor
	}
	w, d := cluster(t)
	w.kind = keyspace.Lock
	holder := w.lockerOn(d.Client(t), node.Config{Lease: lease})
	other := w.lockerOn(d.Client(t), node.Config{Lease: lease})

	forms := map[bool][]string{true: w.inSlotOf("thin", each), false: w.inSlotOf("fat", each)}
	all := make([]*qlock.Lock, 2*each)
	w.eachOf(2*each, func(i int) (err error) {
		all[i], err = holder.Lock(w.Within(patience), forms[i < each][i%each], nil)
		return err
	})
	for _, name := range forms[false] { // it waits until there is a line, and leaves
		ctx, leave := context.WithCancel(w.Within(patience))
		wait := testkit.Begin(ctx, func(ctx context.Context) (*qlock.Lock, error) { return other.Lock(ctx, name, nil) })
		w.awaitInLine(name, 1, wait.Over)
		leave()
		wait.Fails(w, context.Canceled)
	}
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
		var err error
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
