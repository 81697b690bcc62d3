package integration

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/test/harness"
)

// newBothServant is a child with locks and semaphores: order.Kind says of which an order is.
func newBothServant(n *node.Node, lease time.Duration) func(context.Context, order, *answer) error {
	locks, permits := newLockServant(n, lease), newPermitServant(n)
	return func(ctx context.Context, o order, a *answer) error {
		if o.Kind == keyspace.Lock {
			return locks.carryOut(ctx, o, a)
		}
		return permits.carryOut(ctx, o, a)
	}
}

// readingUser makes a user that may read what Berth has stored, and nothing else. It returns what makes a client
// log in as that user.
func (w *world) readingUser() func(*rueidis.ClientOption) {
	w.Helper()
	w.do("ACL", "SETUSER", "reading", "on", ">secret", "resetchannels", "%R~"+w.ns+":*", "-@all", "+@read", "+info", "+time", "+ping")
	return func(o *rueidis.ClientOption) { o.Username, o.Password = "reading", "secret" }
}

// monitor returns what tells which commands have come from some addresses, as MONITOR has it.
func (w *world) monitor(from func() []string) (verbs func() []string) {
	w.Helper()
	conn, err := net.Dial("tcp", w.server.Addr)
	require.NoError(w, err)
	w.Cleanup(func() { _ = conn.Close() })
	_, err = conn.Write([]byte("MONITOR\r\n"))
	require.NoError(w, err)
	lines := bufio.NewScanner(conn)
	require.True(w, lines.Scan(), "%v", lines.Err()) // OK
	var mu sync.Mutex
	var all []string
	go func() {
		for lines.Scan() {
			mu.Lock()
			all = append(all, lines.Text())
			mu.Unlock()
		}
	}()
	return func() (verbs []string) {
		w.Helper()
		w.do("ECHO", "all has been told")
		told := func(line string) bool { return strings.Contains(line, "all has been told") }
		w.Await("MONITOR has told it", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.ContainsFunc(all, told)
		})
		mu.Lock()
		defer mu.Unlock()
		for _, line := range all {
			// 1700000000.123456 [0 127.0.0.1:1234] "MGET" "key"
			_, rest, _ := strings.Cut(line, " [")
			where, words, _ := strings.Cut(rest, "] ")
			_, addr, _ := strings.Cut(where, " ")
			if verb, _, _ := strings.Cut(words, " "); slices.Contains(from(), addr) {
				verbs = append(verbs, strings.ToLower(strings.Trim(verb, `"`)))
			}
		}
		return verbs
	}
}

// addresses are those of a user's connections.
func (w *world) addresses(user string) (all []string) {
	w.Helper()
	list, err := w.do("CLIENT", "LIST").ToString()
	require.NoError(w, err)
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if slices.Contains(fields, "user="+user) {
			addr := fields[slices.IndexFunc(fields, func(f string) bool { return strings.HasPrefix(f, "addr=") })]
			all = append(all, strings.TrimPrefix(addr, "addr="))
		}
	}
	return all
}

// onlyReads fails if one of the commands may write.
func (w *world) onlyReads(verbs []string) {
	w.Helper()
	require.NotEmpty(w, verbs)
	slices.Sort(verbs)
	for _, verb := range slices.Compact(verbs) {
		infos, err := w.do("COMMAND", "INFO", verb).ToArray()
		require.NoError(w, err)
		info, err := infos[0].ToArray()
		require.NoError(w, err, verb)
		flags, err := info[2].AsStrSlice()
		require.NoError(w, err, verb)
		require.NotContains(w, flags, "write", verb)
		require.NotContains(w, []string{"eval", "evalsha"}, verb, "a script may write")
	}
}

// Three processes each hold what the next waits for: two locks and a semaphore. A user that may only read finds the
// circle at the first asking, and the hold that it names frees the others.
func TestThreeProcessesInACircle(t *testing.T) {
	for by, owned := range map[string]bool{"owner": true, "node": false} {
		t.Run(by, func(t *testing.T) {
			w := private(t)
			look, err := inspect.New(w.server.Client(t, w.readingUser()), inspect.Config{Namespace: w.ns, CallTimeout: calls})
			require.NoError(t, err)
			told := w.monitor(func() []string { return w.addresses("reading") })
			ctx := w.Within(patience)

			var at [3]*child
			names := []order{
				{Kind: keyspace.Lock, Name: "first"}, {Kind: keyspace.Lock, Name: "second"}, {Kind: keyspace.Sem, Name: "third", Capacity: 1},
			}
			asks := func(i, name int) order {
				o := names[name%3]
				o.Do = "acquire"
				if owned {
					o.Owner = "order-" + string(rune('1'+i))
				}
				return o
			}
			for i := range at {
				at[i] = w.spawnAs(spec{Both: true, Lease: safe})
				require.Empty(t, at[i].ask(asks(i, i)).Err)
				w.pass(2 * time.Millisecond) // their ages differ
			}
			var waits [3]<-chan answer
			for i, c := range at {
				waits[i] = c.send(asks(i, i+1))
			}
			w.registered(3)

			begin := time.Now()
			found, err := look.Circles(ctx, inspect.CircleOptions{Within: patience})
			took := time.Since(begin)
			t.Logf("named within %v of asking", took.Round(time.Millisecond))
			require.NoError(t, err)
			require.Empty(t, found.Problems)
			require.False(t, found.Partial)
			require.Len(t, found.Circles, 1)
			require.Less(t, took, calls)
			circle := found.Circles[0]
			require.Equal(t, by, circle.By)
			require.Equal(t, owned, circle.Certain)
			require.Len(t, circle.Links, 3)
			require.Len(t, circle.Release, 1)
			require.Equal(t, "third", circle.Release[0].Name, "it is the youngest")
			w.onlyReads(told())
			require.Empty(t, w.refusals(), "nor has it tried to write")

			// The last one loses what it holds: who waits for that goes on, and so do the others.
			n, err := w.node(node.Config{}).Operator().Release(ctx, berth.Target{Kind: keyspace.Sem, Name: "third", Claim: circle.Release[0].Hold.Claim})
			require.NoError(t, err)
			require.Equal(t, 1, n)
			for _, i := range []int{1, 0, 2} {
				require.Empty(t, at[i].hear(waits[i]).Err)
				if i == 2 {
					break
				}
				for _, name := range []int{i, i + 1} {
					o := asks(i, name)
					o.Do = "release"
					require.Empty(t, at[i].ask(o).Err)
				}
			}
			found, err = look.Circles(ctx, inspect.CircleOptions{Within: patience, Loose: true})
			require.NoError(t, err)
			require.Empty(t, found.Circles)
		})
	}
}

// registered returns when the registry of names that wait has so many.
func (w *world) registered(names int) {
	w.Helper()
	read := reader.New(scriptkit.NewRunner(w.admin, scriptkit.Options{}), w.space, false)
	w.Await("the registry knows the names", func() bool {
		found, err := read.Waits(w.Within(patience))
		require.NoError(w, err)
		return len(found.Refs) == names
	})
}

// The names of a circle lie on different servers of a Cluster.
func TestACircleOverServersOfACluster(t *testing.T) {
	t.Parallel()
	d, p := harness.Cluster(t), testkit.RealTime(t)
	ns, ctx := harness.Namespace(t), p.Within(5*patience)
	first, second := "first", ""
	for n := 0; second == ""; n++ {
		if name := fmt.Sprint("second-", n); d.Master(t, "{"+name+"}").Addr != d.Master(t, "{"+first+"}").Addr {
			second = name
		}
	}
	n, err := node.New(d.Client(t), node.Config{Namespace: ns, Lease: time.Minute, CallTimeout: calls, Retry: heard})
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close(p.Within(patience)) })
	locks := qlock.New(n, &qlock.Config{Lease: time.Minute})
	wait := func(name, owner string) *testkit.Call[*qlock.Lock] {
		return testkit.Begin(berth.WithOwner(ctx, owner), func(ctx context.Context) (*qlock.Lock, error) { return locks.Lock(ctx, name, nil) })
	}
	ann, bob := wait(first, "ann"), wait(second, "bob")
	ann.Wait(p)
	held := bob.Wait(p)
	<-time.After(2 * time.Millisecond) // they hold before they wait
	anns, bobs := wait(second, "ann"), wait(first, "bob")
	look, err := inspect.New(d.Client(t), inspect.Config{Namespace: ns, CallTimeout: calls})
	require.NoError(t, err)
	var circles []inspect.Circle
	p.Await("the registry knows the names", func() bool {
		found, err := look.Circles(ctx, inspect.CircleOptions{Within: patience})
		require.NoError(t, err)
		require.Empty(t, found.Problems)
		circles = found.Circles
		return found.Names == 2 && len(circles) > 0
	})
	require.Len(t, circles, 1)
	require.Equal(t, "owner", circles[0].By)
	require.Len(t, circles[0].Links, 2)
	require.Len(t, circles[0].Release, 1)
	require.NoError(t, held.Release(ctx))
	require.NoError(t, anns.Wait(p).Release(ctx))
	require.NoError(t, ann.Got.Release(ctx))
	require.NoError(t, bobs.Wait(p).Release(ctx))
}
