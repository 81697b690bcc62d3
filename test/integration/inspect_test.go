package integration

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

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

// seen are the commands of one client that MONITOR shows.
type seen struct {
	words []string // the first word of each, in lower case
	args  [][]string
}

// watched returns the commands that f has a client send.
func (w *world) watched(redis rueidis.Client, f func()) (all seen) {
	w.Helper()
	watching, err := net.Dial("tcp", w.server.Addr)
	require.NoError(w, err)
	defer func() { _ = watching.Close() }()
	require.NoError(w, watching.SetReadDeadline(time.Now().Add(patience)))
	_, err = watching.Write([]byte("MONITOR\r\n"))
	require.NoError(w, err)
	monitored := bufio.NewScanner(watching)
	monitored.Buffer(nil, 1<<22)
	require.True(w, monitored.Scan())
	var lines []string
	var reading sync.WaitGroup
	reading.Go(func() {
		for monitored.Scan() && !strings.Contains(monitored.Text(), "the end of what is watched") {
			lines = append(lines, monitored.Text())
		}
	})
	user, err := redis.Do(w.Within(patience), redis.B().Arbitrary("CLIENT", "ID").Build()).AsInt64()
	var from []string // its connections
	address := func(client string) string { return " " + strings.TrimPrefix(strings.Fields(client)[1], "addr=") + "]" }
	if err == nil {
		info, err := w.do("CLIENT", "LIST", "ID", strconv.FormatInt(user, 10)).ToString()
		require.NoError(w, err)
		from = []string{address(info)}
	}
	f()
	if from == nil { // it may not ask for its id
		list, err := w.do("CLIENT", "LIST").ToString()
		require.NoError(w, err)
		for line := range strings.Lines(list) {
			if strings.Contains(line, " user=reading ") {
				from = append(from, address(line))
			}
		}
	}
	w.do("ECHO", "the end of what is watched")
	reading.Wait()
	require.NoError(w, monitored.Err())
	for _, line := range lines {
		at := slices.IndexFunc(from, func(from string) bool { return strings.Contains(line, from) })
		if at < 0 {
			continue
		}
		_, command, _ := strings.Cut(line, from[at])
		var words []string
		for word := range strings.SplitSeq(strings.TrimSpace(command), `" "`) {
			words = append(words, strings.Trim(word, `"`))
		}
		all.words, all.args = append(all.words, strings.ToLower(words[0])), append(all.args, words[1:])
	}
	require.NotEmpty(w, all.words)
	return all
}

// everything reads all that there is to read, in small pages and in large ones. Pages may tell a name twice, and a hold
// that is renewed meanwhile: each counts once.
func everything(ctx context.Context, t testing.TB, look *inspect.Reader) (names, claims int) {
	t.Helper()
	seen := make(map[string]bool)
	first := func(parts ...string) (count int) {
		if key := strings.Join(parts, " "); !seen[key] {
			seen[key], count = true, 1
		}
		return count
	}
	for _, f := range []inspect.NameFilter{{}, {Idle: true, Prefix: "g"}, {Waiting: true}} {
		for cursor := ""; ; {
			page, err := look.Names(ctx, f, cursor, 2)
			require.NoError(t, err)
			require.Empty(t, page.Problems)
			for _, n := range page.Items {
				require.NoError(t, n.Err)
				if !f.Idle && !f.Waiting {
					names += first(string(n.Kind), n.Name)
				}
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
	}
	for cursor := ""; ; {
		page, err := look.Claims(ctx, inspect.ClaimFilter{}, cursor, 2)
		require.NoError(t, err)
		require.Empty(t, page.Problems)
		for _, c := range page.Items {
			claims += first(string(c.Kind), c.Name, c.ID())
			_, err := look.Explain(ctx, c.Kind, c.Name, c.ID())
			require.NoError(t, err)
			_, err = look.Explain(ctx, c.Kind, c.Name, "")
			require.NoError(t, err)
			_, err = look.Name(ctx, c.Kind, c.Name)
			require.NoError(t, err)
			for holds, waits := "", ""; ; {
				h, err := look.Holders(ctx, c.Kind, c.Name, holds, 1)
				require.NoError(t, err)
				q, err := look.Waiters(ctx, c.Kind, c.Name, waits, 1)
				require.NoError(t, err)
				if holds, waits = h.Next, q.Next; holds == "" || waits == "" {
					break
				}
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	found, err := look.Circles(ctx, inspect.CircleOptions{Within: patience})
	require.NoError(t, err)
	require.Empty(t, found.Problems)
	return names, claims
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
	shown := w.watched(redis, func() {
		names, claims := everything(w.Within(patience), t, look)
		require.Equal(t, 3, names)
		require.Equal(t, 11, claims)
	})
	allowed := []string{"hello", "info", "client", "ping"} // INFO is refused, and missed by nobody
	for _, command := range reader.Commands {
		allowed = append(allowed, strings.ToLower(command))
		require.Contains(t, shown.words, strings.ToLower(command), "the user needs no more than is sent")
	}
	for _, word := range shown.words {
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
			d, ns := test.deploy(t), harness.Namespace(t)
			var user func(*rueidis.ClientOption)
			for _, server := range d.Servers() {
				user = server.ReadingUser(t, ns, test.more...)
			}
			space, err := keyspace.New(ns)
			require.NoError(t, err)
			w := &world{Patient: testkit.RealTime(t), admin: d.Client(t), ns: ns, space: space, kind: keyspace.Sem}
			gpu := w.sem(w.nodeOn(d.Client(t), node.Config{Namespace: ns, Lease: time.Minute}), "gpu", 1)
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

// thinNames makes so many locks that are held.
func (w *world) thinNames(many int) {
	w.Helper()
	const script = `
for n = ARGV[1], ARGV[2] - 1 do
	redis.call("SET", string.format("%s:lock:{x%06d}:state", ARGV[3], n), ARGV[4])
end`
	now := time.Now()
	text := fmt.Sprintf("%016d %013d node.claim 1 - r 3600000 3600000 0 0 0:0:0:", now.UnixMicro(), now.Add(time.Hour).UnixMilli())
	const step = 10_000
	for n := 0; n < many; n += step {
		require.ErrorIs(w, w.do("EVAL", script, "0", strconv.Itoa(n), strconv.Itoa(n+step), w.ns, text).Error(), rueidis.Nil)
	}
}

// mostOf is how many entries the largest trip of a client asked for. A trip begins with TIME.
func mostOf(all seen) (most, trips int) {
	entries := 0
	for i, word := range all.words {
		args := all.args[i]
		switch word {
		case "time":
			entries, trips = 0, trips+1
		case "hmget":
			entries += len(slices.DeleteFunc(slices.Clone(args[1:]), func(field string) bool { return len(field) < 2 || field[1] != ':' }))
		case "zmscore":
			entries += len(args) - 1
		case "mget":
			entries += len(args)
		case "zrange":
			from, _ := strconv.Atoi(args[1])
			to, _ := strconv.Atoi(args[2])
			entries = max(entries, to-from+1) // its members are those whose records are asked for
		}
		most = max(most, entries)
	}
	return most, trips
}

// Thirty thousand names, and three thousand who wait for one of them: no call looks at more than a thousand entries
// at once, and each needs few trips.
func TestReadingIsBoundedWhateverThereIs(t *testing.T) {
	const names, waiters, contended = 30_000, 3_000, 60
	w := private(t)
	cfg := node.Config{Lease: time.Hour, CallTimeout: patience}
	sems := w.node(cfg)
	crowd := w.sem(sems, "crowd", 2)
	w.take(crowd, nil)
	w.take(crowd, nil)
	ctx, leave := context.WithCancel(w.Within(patience))
	var waiting sync.WaitGroup
	for range waiters {
		waiting.Go(func() { _, _ = crowd.Acquire(ctx, nil) })
	}
	for n := range contended {
		one := w.sem(sems, fmt.Sprintf("busy-%d", n), 2)
		w.take(one, &semaphore.AcquireOptions{Weight: 2})
		waiting.Go(func() { _, _ = one.Acquire(ctx, nil) })
	}
	t.Cleanup(func() {
		leave()
		waiting.Wait()
	})
	w.thinNames(names)
	redis := w.server.Client(t)
	look := w.inspector(redis)
	w.Await("all wait, and the registry knows", func() bool {
		page, err := look.Names(ctx, inspect.NameFilter{Waiting: true}, "", 100)
		require.NoError(t, err)
		return len(page.Items) == contended+1 && page.Items[0].Waiting == waiters
	})

	bounded := func(what string, trips int, f func()) {
		t.Helper()
		begun, took := time.Time{}, time.Duration(0)
		shown := w.watched(redis, func() {
			begun = time.Now()
			f()
			took = time.Since(begun)
		})
		most, sent := mostOf(shown)
		t.Logf("%s: %v, %d trips, at most %d entries in one", what, took.Round(100*time.Microsecond), sent, most)
		require.LessOrEqual(t, most, reader.Most+100, what)
		if took > time.Second { // trips so far apart do not count as one reading: it is tried three times
			trips *= 3
		}
		require.LessOrEqual(t, sent, trips, what)
	}
	bounded("a page of a name's waiters", 4, func() {
		page, err := look.Waiters(ctx, keyspace.Sem, "crowd", "", 1000)
		require.NoError(t, err)
		require.Len(t, page.Items, 1000)
	})
	bounded("a name", 8, func() {
		n, err := look.Name(ctx, keyspace.Sem, "crowd")
		require.NoError(t, err)
		require.Equal(t, waiters, n.Waiting)
	})
	bounded("why it stands still", 30, func() {
		_, err := look.Explain(ctx, keyspace.Sem, "crowd", "")
		require.NoError(t, err)
	})
	bounded("a page of names", 60, func() {
		page, err := look.Names(ctx, inspect.NameFilter{}, "", 1000)
		require.NoError(t, err)
		require.True(t, page.Partial || len(page.Items) == 1000, "it is full, or says that it is not") // time may end it before the first name
		require.NotEmpty(t, page.Next)
		t.Logf("it has %d names, partial: %v", len(page.Items), page.Partial)
	})
	bounded("the most contended fifty", 40, func() {
		page, err := look.Names(ctx, inspect.NameFilter{Waiting: true}, "", 50)
		require.NoError(t, err)
		require.Len(t, page.Items, 50)
		require.Equal(t, "crowd", page.Items[0].Name)
	})
	bounded("a page of claims", 60, func() {
		page, err := look.Claims(ctx, inspect.ClaimFilter{}, "", 1000)
		require.NoError(t, err)
		require.NotEmpty(t, page.Next)
		t.Logf("it has %d claims, partial: %v", len(page.Items), page.Partial)
	})
}
