package integration

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// inspector reads the namespace of a world.
func (w *world) inspector(redis rueidis.Client) *inspect.Reader {
	w.Helper()
	look, err := inspect.New(redis, inspect.Config{Namespace: w.ns, CallTimeout: calls})
	require.NoError(w, err)
	return look
}

// sent returns the first words, in lower case, of the commands that f has the reading user send, as MONITOR shows them.
func (w *world) sent(f func()) (verbs []string) {
	w.Helper()
	watching, err := net.Dial("tcp", w.server.Addr)
	require.NoError(w, err)
	w.Cleanup(func() { _ = watching.Close() })
	require.NoError(w, watching.SetReadDeadline(time.Now().Add(patience)))
	_, err = watching.Write([]byte("MONITOR\r\n"))
	require.NoError(w, err)
	monitored := bufio.NewScanner(watching)
	require.True(w, monitored.Scan())
	f()
	list, err := w.do("CLIENT", "LIST").ToString()
	require.NoError(w, err)
	w.do("ECHO", "the end of what is watched")
	for monitored.Scan() && !strings.Contains(monitored.Text(), "the end of what is watched") {
		// 1700000000.123456 [0 127.0.0.1:1234] "MGET" "key"
		where, words, _ := strings.Cut(monitored.Text(), `] "`)
		_, addr, _ := strings.Cut(where, "[0 ")
		if regexp.MustCompile(`(?m)^.* addr=` + regexp.QuoteMeta(addr) + ` .* user=reading `).MatchString(list) {
			verb, _, _ := strings.Cut(words, `"`)
			verbs = append(verbs, strings.ToLower(verb))
		}
	}
	require.NoError(w, monitored.Err())
	return verbs
}

// everything reads all that there is to read, in small pages. Pages may tell a name twice, and a hold
// that is renewed meanwhile: each counts once.
func everything(ctx context.Context, t testing.TB, look *inspect.Reader) (names, claims int) {
	t.Helper()
	seenNames, seenClaims := map[string]bool{}, map[string]bool{}
	// pages reads page after page, until the function returns the cursor "".
	pages := func(read func(cursor string) string) {
		for cursor, more := "", true; more; more = cursor != "" {
			cursor = read(cursor)
		}
	}
	for _, f := range []inspect.NameFilter{{}, {Idle: true, Prefix: "g"}, {Waiting: true}} {
		pages(func(cursor string) string {
			page, err := look.Names(ctx, f, cursor, 2)
			require.NoError(t, err)
			require.Empty(t, page.Problems)
			for _, n := range page.Items {
				require.NoError(t, n.Err)
				if !f.Idle && !f.Waiting {
					seenNames[string(n.Kind)+" "+n.Name] = true
				}
			}
			return page.Next
		})
	}
	pages(func(cursor string) string {
		page, err := look.Claims(ctx, inspect.ClaimFilter{}, cursor, 2)
		require.NoError(t, err)
		require.Empty(t, page.Problems)
		for _, c := range page.Items {
			seenClaims[string(c.Kind)+" "+c.Name+" "+c.ID()] = true
			for _, id := range []string{c.ID(), ""} {
				_, err := look.Explain(ctx, c.Kind, c.Name, id)
				require.NoError(t, err)
			}
			_, err = look.Name(ctx, c.Kind, c.Name)
			require.NoError(t, err)
			pages(func(cursor string) string {
				h, err := look.Holders(ctx, c.Kind, c.Name, cursor, 1)
				require.NoError(t, err)
				return h.Next
			})
			pages(func(cursor string) string {
				q, err := look.Waiters(ctx, c.Kind, c.Name, cursor, 1)
				require.NoError(t, err)
				return q.Next
			})
		}
		return page.Next
	})
	found, err := look.Cycles(ctx, &inspect.CycleOptions{Within: patience})
	require.NoError(t, err)
	require.Empty(t, found.Problems)
	return len(seenNames), len(seenClaims)
}

// street has some of everything: 3 names, with 5 holds and 6 waits.
func (w *world) street() {
	w.Helper()
	ctx := w.Within(patience)
	locks := w.locker(node.Config{Swarm: node.SwarmConfig{Auto: true}})
	gpu := w.sem(locks.Node, "gpu", 3)
	for range 3 {
		w.take(gpu, nil)
	}
	w.queue(gpu, nil, 1)
	w.queue(gpu, &semaphore.AcquireOptions{Priority: 2, Weight: 2}, 2)
	_, err := locks.Lock(ctx, "nightly", nil)
	require.NoError(w, err)
	for range 2 {
		go func() { _, _ = locks.Lock(ctx, "nightly", &qlock.LockOptions{Access: qlock.LIFO}) }() // ends with the node
	}
	pool := w.proxies(locks.Node, poolConfig{})
	_, err = pool.Add(ctx, []string{"a", "b", "c"}, nil)
	require.NoError(w, err)
	require.NoError(w, pool.Rest(ctx, "b", time.Hour, "answers 429", nil))
	require.NoError(w, pool.Rest(ctx, "c", time.Hour, "", nil))
	_, err = pool.Allocate(ctx, nil)
	require.NoError(w, err)
	for _, opts := range []*allocator.AllocateOptions{{Resource: "a"}, nil} {
		go func() { _, _ = pool.Allocate(ctx, opts) }() // ends with the node
	}
	look := w.inspector(w.admin)
	w.Await("all wait, and the registry knows", func() bool {
		names, claims := 0, 0
		page, err := look.Names(ctx, inspect.NameFilter{Waiting: true}, "", 0)
		require.NoError(w, err)
		for _, n := range page.Items {
			names, claims = names+1, claims+n.Waiting
		}
		return names == 3 && claims == 6
	})
}

// The reading user that docs/generated/acl.md gives can read everything, and sends the commands of that user alone.
func TestTheReadingUser(t *testing.T) {
	w := private(t)
	w.street()
	user := w.server.ReadingUser(t, w.ns)
	redis := w.server.Client(t, user)
	look := w.inspector(redis)
	shown := w.sent(func() {
		names, claims := everything(w.Within(patience), t, look)
		require.Equal(t, 3, names)
		require.Equal(t, 11, claims)
	})
	allowed := []string{"hello", "info", "client", "ping"} // INFO is refused, and missed by nobody
	for _, command := range reader.Commands {
		allowed = append(allowed, strings.ToLower(command))
		require.Contains(t, shown, strings.ToLower(command), "the user needs no more than is sent")
	}
	for _, word := range shown {
		require.Contains(t, allowed, word)
	}
	for _, write := range [][]string{{"SET", w.ns + ":x", "1"}, {"HSET", w.space.State(keyspace.Sem, "gpu"), "v", "1"}, {"EVAL", "return 1", "0"}} {
		require.ErrorContains(t, redis.Do(w.Within(patience), redis.B().Arbitrary(write...).Build()).Error(), "NOPERM", write)
	}
}

// Under Sentinels, and in a Cluster, the user needs what docs/operations.md adds; a replica under Sentinels is read, too.
func TestTheReadingUserElsewhere(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		deploy  func(testing.TB) *harness.Deployment
		more    []string
		replica bool
	}{
		"sentinel":           {harness.Sentinel, []string{"+role"}, false},
		"sentinel's replica": {harness.Sentinel, []string{"+role"}, true},
		"cluster":            {harness.Cluster, []string{"+cluster|slots", "+cluster|shards", "+asking"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := test.deploy(t)
			w := onAll(t, d)
			var user func(*rueidis.ClientOption)
			for _, server := range d.Servers() {
				user = server.ReadingUser(t, w.ns, test.more...)
			}
			gpu := w.sem(w.nodeOn(d.Client(t), node.Config{}), "gpu", 1)
			w.take(gpu, nil)
			w.queue(gpu, nil, 1)
			redis := d.Client(t, user, func(o *rueidis.ClientOption) { o.ReplicaOnly = test.replica })
			look := w.inspector(redis)
			w.Await("it is read", func() bool { // a replica is a little behind
				n, err := look.Name(w.Within(patience), keyspace.Sem, "gpu")
				require.NoError(t, err)
				return n.Waiting == 1 && n.Held == 1 && n.Replica == test.replica
			})
			names, claims := everything(w.Within(patience), t, look)
			require.Equal(t, 1, names)
			require.Equal(t, 2, claims)
			view, err := look.View(keyspace.Sem, "gpu")
			require.NoError(t, err)
			overview, err := look.Overview(inspect.NameFilter{})
			require.NoError(t, err)
			for range 3 { // the second reading knows what the first one has found
				l, err := view.Read(w.Within(patience))
				require.NoError(t, err)
				require.Equal(t, test.replica, l.Replica)
				require.Len(t, l.Holds, 1)
				require.Len(t, l.Waits, 1)
				page, err := overview.Read(w.Within(patience))
				require.NoError(t, err)
				require.Empty(t, page.Problems)
				require.Len(t, page.Items, 1)
				require.Equal(t, []int{1, 1}, []int{page.Items[0].Held, page.Items[0].Waiting})
			}
		})
	}
}

// The names of a cycle lie on different servers of a Cluster.
func TestACycleOverServersOfACluster(t *testing.T) {
	w, d := cluster(t)
	ctx := w.Within(5 * patience)
	first, second := "first", ""
	for n := 0; second == ""; n++ {
		if name := fmt.Sprint("second-", n); d.Master(t, "{"+name+"}").Addr != d.Master(t, "{"+first+"}").Addr {
			second = name
		}
	}
	locks := w.lockerOn(d.Client(t), node.Config{})
	wait := func(name, owner string) *testkit.Call[*qlock.Lock] {
		return testkit.Begin(berth.WithOwner(ctx, owner), func(ctx context.Context) (*qlock.Lock, error) {
			return locks.Lock(ctx, name, nil)
		})
	}
	held := [2]*qlock.Lock{wait(first, "ann").Wait(w), wait(second, "bob").Wait(w)}
	<-time.After(2 * time.Millisecond) // they hold before they wait
	ann, bob := wait(second, "ann"), wait(first, "bob")
	look := w.inspector(d.Client(t))
	var cycles []inspect.Cycle
	w.Await("the registry knows the names", func() bool {
		found, err := look.Cycles(ctx, &inspect.CycleOptions{Within: patience})
		require.NoError(t, err)
		require.Empty(t, found.Problems)
		cycles = found.Cycles
		return found.Names == 2 && len(cycles) > 0
	})
	require.Len(t, cycles, 1)
	require.Equal(t, "owner", cycles[0].By)
	require.Len(t, cycles[0].Links, 2)
	require.Len(t, cycles[0].Release, 1)
	w.release(held[1])
	w.release(ann.Wait(w), held[0])
	w.release(bob.Wait(w))
}

// durations are what of a sentence depends on the machine.
var durations = regexp.MustCompile(`\b\d+(\.\d+)?(ms|s)\b|\b\d+m\d\ds\b|\b\d+h\d\dm\b`)

// explains fails unless that is said of the semaphore "gpu" by who asks there, with T for each duration.
func (w *world) explains(redis rueidis.Client, says string, codes ...inspect.Code) inspect.Explanation {
	w.Helper()
	look := w.inspector(redis)
	var e inspect.Explanation
	w.Await("its trips are made within a second", func() bool {
		var err error
		e, err = look.Explain(w.Within(patience), keyspace.Sem, "gpu", "")
		require.NoError(w, err)
		return !e.Moving
	})
	require.Equal(w, says, durations.ReplaceAllString(e.String(), "T"))
	var told []inspect.Code
	for _, r := range e.Reasons {
		told = append(told, r.Code)
	}
	require.Equal(w, codes, told)
	return e
}

// What a server says of itself: that it is full, that it lacks replicas, that it is one.
func TestExplainOfAServerThatRefuses(t *testing.T) {
	const (
		held = `1 waits for semaphore "gpu", beta first (T): the one is held; ` +
			`alpha has held it for T and renews it (heard of T ago).`
		whatNext = ` Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in T.`
	)
	w := private(t)
	alpha := w.node(node.Config{Label: "alpha", Lease: time.Hour}) // no heartbeat comes
	w.take(w.sem(alpha, "gpu", 1), nil)
	w.queue(w.sem(w.node(node.Config{Label: "beta", Lease: time.Hour}), "gpu", 1), nil, 1)
	reading := w.server.Client(t, w.server.ReadingUser(t, w.ns, "+info"))
	require.False(t, w.explains(reading, held+whatNext, inspect.Full).Replica)

	w.fill()
	w.explains(reading, held+" The server is full: it refuses new claims, and who holds or waits goes on."+whatNext,
		inspect.Full, inspect.ServerFull)
	_, err := w.sem(w.node(node.Config{}), "gpu", 1).TryAcquire(w.Within(patience), nil)
	require.ErrorContains(t, err, "the server is full", "it is so")
	w.drained()
	w.do("CONFIG", "SET", "min-replicas-to-write", "1")
	const refuses = " The server refuses writes: nothing is granted or renewed until that ends, and leases run out."
	w.explains(reading, held+refuses+whatNext, inspect.Full, inspect.ServerRefuses)
	require.ErrorContains(t, w.answers("SET", w.ns+":x", "1"), "NOREPLICAS", "it is so")
	w.do("CONFIG", "SET", "min-replicas-to-write", "0")
	w.explains(reading, held+whatNext, inspect.Full)

	host, port, err := net.SplitHostPort(w.server.Addr)
	require.NoError(t, err)
	replica := harness.Start(t, "--replicaof", host, port).Client(t)
	w.Await("the replica has it", func() bool { return w.Reader(replica, w.ns).Look(keyspace.Sem, "gpu").Waiting == 1 })
	require.True(t, w.explains(replica, held+" This is what the replica knows. Nothing ends by itself: alpha renews.",
		inspect.Full, inspect.OfReplica).Replica)
	// What leads to a write is not read there.
	there, err := node.New(replica, node.Config{Namespace: w.ns, CallTimeout: calls, Retry: berth.Retry{Attempts: 1}})
	require.NoError(w, err)
	w.closed(there.Close)
	_, err = there.Operator().Release(w.Within(patience), berth.Target{Kind: keyspace.Sem, Name: "gpu", Node: alpha.ID()})
	require.ErrorIs(w, err, berth.ErrUnavailable)
	require.ErrorContains(w, err, "a replica answered")
}
