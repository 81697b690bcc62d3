package integration

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// The user with the smallest rights that docs/operations.md gives can do all.
func TestTheSmallestUser(t *testing.T) {
	w := private(t)
	user := w.server.SmallestUser(t, w.ns)
	cfg := node.Config{Lease: time.Hour} // the first heartbeat is far off: what comes, comes by a push
	here, there := w.node(cfg, user), w.node(cfg, user)
	ctx := w.Within(patience)

	mine, theirs := w.sem(here, "gpu", 1), w.sem(there, "gpu", 1)
	report, err := here.Check(ctx)
	require.NoError(t, err)
	t.Logf("warnings: %q", report.Warnings)
	for _, warning := range report.Warnings {
		require.Contains(t, warning, "could not be asked")
	}

	p := w.take(mine, nil)
	q := w.queue(theirs, nil, 1)
	_, err = mine.TryAcquire(ctx, nil)
	require.ErrorIs(t, err, berth.ErrBusy)
	reader := w.reader(user)
	require.Len(t, reader.Holders(keyspace.Sem, "gpu"), 1)
	require.Len(t, reader.Waiters(keyspace.Sem, "gpu"), 1)
	require.NoError(t, p.Renew(ctx))
	require.NoError(t, p.Release(ctx))
	p = q.Wait(w)
	q = w.queue(mine, nil, 1)
	require.NoError(t, semaphore.NewOperator(here).Resize(ctx, "gpu", 2, nil))
	require.NoError(t, q.Wait(w).Release(ctx))
	token, err := p.Detach(ctx)
	require.NoError(t, err)
	p, err = mine.Resume(ctx, token)
	require.NoError(t, err)
	_, err = there.Operator().Release(ctx, berth.Target{Kind: keyspace.Sem, Name: "gpu", Claim: p.ID()})
	require.NoError(t, err)
	w.Signalled("the holder to hear", p.Done())
	require.Zero(t, reader.Look(keyspace.Sem, "gpu").Held)
	w.tombstones("gpu")
}

func TestTheSmallestUserIsRestored(t *testing.T) {
	w := private(t)
	user := w.server.SmallestUser(t, w.ns)
	cfg := node.Config{Lease: safe}
	w.take(w.sem(w.node(cfg, user), "gpu", 1), nil)
	q := w.queue(w.sem(w.node(cfg, user), "gpu", 1), nil, 1)
	w.forget("gpu")
	require.NoError(t, q.Wait(w).Release(w.Within(patience)))
	w.tombstones("gpu") // of a restore that was slow to be answered
}

// Without PUBLISH a waiter hears of its grant with its next heartbeat, and
// nothing else is different.
func TestAUserWhoMayNotPublish(t *testing.T) {
	w := private(t)
	user := w.server.SmallestUser(t, w.ns)
	w.do("ACL", "SETUSER", "smallest", "-publish")
	cfg := node.Config{Lease: safe}
	here, there := w.node(cfg, user), w.node(cfg, user)
	report, err := here.Check(w.Within(patience))
	require.NoError(t, err)
	require.Contains(t, report.Warnings[len(report.Warnings)-1], "PUBLISH is refused")
	mine, theirs := w.sem(here, "gpu", 1), w.sem(there, "gpu", 1)
	p := w.take(mine, nil)
	q := w.queue(theirs, nil, 1)
	require.NoError(t, p.Release(w.Within(patience)))
	require.NoError(t, q.Wait(w).Release(w.Within(patience)))
	// A holder is swept without pushes, too.
	dead := w.spawn(safe)
	dead.acquire("gpu", 1)
	q = w.queue(theirs, nil, 1)
	dead.kill()
	require.NoError(t, q.Wait(w).Release(w.Within(patience)))
	w.tombstones("gpu")
}

// The rules that docs/operations.md adds for a Cluster are enough for one, also while
// a slot moves.
func TestTheSmallestUserOfACluster(t *testing.T) {
	t.Parallel()
	d, ns := harness.Cluster(t), harness.Namespace(t)
	var user func(*rueidis.ClientOption)
	for _, server := range d.Servers() {
		user = server.SmallestUser(t, ns, "+cluster|slots", "+cluster|shards", "+asking")
	}
	space, err := keyspace.New(ns)
	require.NoError(t, err)
	w := &world{Patient: testkit.RealTime(t), admin: d.Client(t), ns: ns, space: space, kind: keyspace.Sem}
	cfg := node.Config{Namespace: ns, Lease: time.Minute}
	here, there := w.nodeOn(d.Client(t, user), cfg), w.nodeOn(d.Client(t, user), cfg)
	p := w.take(w.sem(here, "gpu", 2), &semaphore.AcquireOptions{Weight: 2})
	move := d.Move(t, "{gpu}")
	move.Keys(t) // from here on the old master answers ASK
	q := w.queue(w.sem(there, "gpu", 2), nil, 1)
	move.Finish(t)
	require.NoError(t, p.Release(w.Within(patience)))
	require.NoError(t, q.Wait(w).Release(w.Within(patience)))
}

// What docs/operations.md says that a user of one namespace can and cannot do to others.
func TestWhatAUserCanDoToOthers(t *testing.T) {
	w := private(t, "--busy-reply-threshold", "100")
	user := w.server.SmallestUser(t, w.ns, "+scan")
	c := w.server.Client(t, user)
	call := func(words ...string) rueidis.RedisResult {
		return c.Do(w.Within(patience), c.B().Arbitrary(words...).Build())
	}
	const of, under = "other", ":prod"
	key, channel := of+":sem:{x}:state", of+":wake:n"
	w.do("HSET", key, "f", "theirs")
	w.do("HSET", w.ns+under+":sem:{x}:state", "f", "theirs")

	for name, words := range map[string][]string{
		"read a key":        {"HGET", key, "f"},
		"write a key":       {"HSET", key, "f", "mine"},
		"drop a key":        {"UNLINK", key},
		"read by a script":  {"EVAL", `return redis.call("HGET", KEYS[1], "f")`, "1", key},
		"publish":           {"PUBLISH", channel, "x"},
		"watch":             {"MONITOR"},
		"read the slow log": {"SLOWLOG", "GET"},
		"drop everything":   {"FLUSHALL"},
		"end scripts":       {"SCRIPT", "KILL"},
		"end the server":    {"SHUTDOWN", "NOSAVE"},
		"change the rules":  {"ACL", "SETUSER", "smallest", "~*"},
		"list by a pattern": {"KEYS", "*"},
	} {
		require.ErrorContains(t, call(words...).Error(), "NOPERM", name)
	}
	err := call("EVAL", `return redis.call("PUBLISH", ARGV[1], "x")`, "0", channel).Error()
	require.ErrorContains(t, err, "can't publish", "publish by a script")
	err = call("EVAL", `return redis.call("HSET", ARGV[1], "f", "mine")`, "0", key).Error()
	require.ErrorContains(t, err, "can't access", "write a key that is not declared")
	err = c.Receive(w.Within(patience), c.B().Subscribe().Channel(channel).Build(), func(rueidis.PubSubMessage) {})
	require.ErrorContains(t, err, "NOPERM", "subscribe")

	seen, err := call("HGET", w.ns+under+":sem:{x}:state", "f").ToString()
	require.NoError(t, err)
	require.Equal(t, "theirs", seen, "a namespace that begins with its own and a colon")
	page, err := call("SCAN", "0", "COUNT", "1000").AsScanEntry()
	require.NoError(t, err)
	require.Contains(t, page.Elements, key, "names of all namespaces")

	// A script that loops.
	looping := make(chan error, 1)
	go func() { looping <- call("EVAL", "while true do end", "0").Error() }()
	w.Await("everybody is answered BUSY", func() bool {
		err := w.admin.Do(w.Within(patience), w.admin.B().Exists().Key(key).Build()).Error()
		return err != nil && strings.HasPrefix(err.Error(), "BUSY")
	})
	require.NoError(t, w.admin.Do(w.Within(patience), w.admin.B().ScriptKill().Build()).Error())
	require.ErrorContains(t, <-looping, "killed")
}

// Who may watch, or read the keys, sees the secret of a claim; a waiter's push is
// proved by it.
func TestWhoSeesTheSecretOfAClaim(t *testing.T) {
	w := private(t, "--slowlog-log-slower-than", "0")
	watching, err := net.Dial("tcp", w.server.Addr)
	require.NoError(t, err)
	defer func() { _ = watching.Close() }()
	require.NoError(t, watching.SetReadDeadline(time.Now().Add(patience)))
	_, err = watching.Write([]byte("MONITOR\r\n"))
	require.NoError(t, err)
	monitored := bufio.NewScanner(watching)
	require.True(t, monitored.Scan())

	p := w.take(w.sem(w.node(node.Config{Lease: time.Minute}), "gpu", 2), nil) // a thin name has no secret
	text, err := w.do("HGET", w.space.State(keyspace.Sem, "gpu"), "c:"+p.ID()).ToString()
	require.NoError(t, err)
	secret := strings.Split(text, " ")[7]
	require.Len(t, secret, 11)
	for seen := false; !seen; seen = strings.Contains(monitored.Text(), secret) {
		require.True(t, monitored.Scan(), "MONITOR shows it: %v", monitored.Err())
	}
	slow, err := w.do("SLOWLOG", "GET", "128").ToAny()
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(slow), secret)
	require.NoError(t, p.Release(w.Within(patience)))
}
