package top

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	stored "github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// night is a server on which much is wrong.
type night struct{ *testkit.World }

// process is one with a node.
type process struct {
	*testkit.Process
	*node.Node
	night
	locks *qlock.Locks
}

func (w night) process(label string, swarm node.SwarmConfig) process {
	p := w.Process()
	n := testkit.Must(node.New(p.Redis, node.Config{Label: label, Lease: testkit.Lease, Swarm: swarm})).In(w.T)
	p.Closes(n.Close)
	return process{p, n, w, qlock.New(n, qlock.Config{Lease: testkit.Lease})}
}

func as(owner string) context.Context { return berth.WithOwner(context.Background(), owner) }

func (p process) lock(name, owner string) *qlock.Lock {
	return testkit.Must(p.locks.Lock(as(owner), name, &qlock.LockOptions{Lease: berth.Forever})).In(p.T)
}

func (p process) awaitLock(name, owner string) {
	testkit.Queue(as(owner), p.World, func(ctx context.Context) (*qlock.Lock, error) { return p.locks.Lock(ctx, name, nil) })
}

// gpus has one hold the semaphore, and others wait.
func (p process) gpus(other process, name string, waiting int) {
	testkit.Must(semaphore.New(p.Node, name, 1, semaphore.Config{}).Acquire(context.Background(), nil)).In(p.T)
	for range waiting {
		testkit.Queue(context.Background(), p.World, func(ctx context.Context) (*semaphore.Permit, error) {
			return semaphore.New(other.Node, name, 1, semaphore.Config{}).Acquire(ctx, nil)
		})
	}
}

// rests is a pool whose one resource rests.
func (p process) rests(name string, d time.Duration) {
	pool := allocator.New(p.Node, name, allocator.Config[string]{})
	testkit.Must(pool.Add(context.Background(), []string{"x"}, nil)).In(p.T)
	require.NoError(p.T, pool.Rest(context.Background(), "x", d, "banned", nil))
}

// falls makes the mess.
func (w night) falls() {
	one, two := w.process("host-1/one", node.SwarmConfig{}), w.process("host-2/two", node.SwarmConfig{})
	one.gpus(two, "gpu", 30)
	for i := range 25 {
		one.gpus(two, fmt.Sprintf("busy-%02d", i), 1)
	}
	_, err := one.lock("report", "").Detach(context.Background())
	require.NoError(w.T, err)
	two.awaitLock("report", "")
	one.lock("table-a", "order-1")
	two.lock("table-b", "order-2")
	one.awaitLock("table-b", "order-1")
	two.awaitLock("table-a", "order-2")
	one.rests("mailboxes", berth.Forever)
	one.rests("proxies", time.Hour)
	require.NoError(w.T, one.Operator().Pause(context.Background(), keyspace.Sem, "paused", time.Hour, ""))
	one.awaitLock("unheard", "")
	dead := w.process("host-3/dead", node.SwarmConfig{Auto: true})
	w.Advance(time.Second)
	dead.lock("nightly", "")
	dead.Die()
	w.Do("HSET", "berth:notice:{all}:state", "l:old/*", fmt.Sprintf("%d x.1 0 drain new release", time.Now().Add(-2*time.Hour).UnixMilli()))
	w.Do("HSET", "berth:lock:{newer}:state", "v", "4 and new words")
	w.Advance(time.Minute)
}

// awaited has so many claims wait for a semaphore.
func (w night) awaited(name string, claims int) {
	space := testkit.Must(keyspace.New(keyspace.DefaultNamespace)).In(w.T)
	w.Name, w.State, w.Line = name, space.State(keyspace.Sem, name), space.Line(keyspace.Sem, name)
	for n := range claims {
		r := stored.Record{Weight: 1, Wait: time.Hour, Lease: time.Hour, Phase: 'w', Node: "node"}
		w.Acquires("semaphore", r.Node, fmt.Sprintf("c.%d", n), &r, "1", "stored", stored.Calm(1))
	}
	member := stored.Member(string(keyspace.Sem), name)
	w.Do("ZADD", space.Key(keyspace.Waits, strconv.Itoa(stored.Shard(member)), keyspace.NamesPart),
		strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10), member)
}

// page is what berth top prints where there is no terminal.
func (w night) page(read *inspect.Reader) (out, errs string) {
	w.T.Helper()
	var said, wrong bytes.Buffer
	a := app.New(&said, &wrong)
	a.Namespace = keyspace.DefaultNamespace
	require.NoError(w.T, onePage(context.Background(), a, read, nil))
	return said.String(), wrong.String()
}

func TestOnePageHasTheMostContendedOfManyNamesAndSaysWhatItLacks(t *testing.T) {
	testkit.In(t, "gpu", "berth:sem:{gpu}:state", "berth:sem:{gpu}:line", func(t *testing.T, base *testkit.World) {
		w, made := night{base}, 0
		read := testkit.Must(inspect.New(w.Redis, inspect.Config{})).In(t)
		for _, most := range []int{190, 300, 900} {
			for ; made < most; made++ {
				w.awaited(fmt.Sprintf("n%03d", made), 2)
			}
			hot := fmt.Sprintf("n%03d", most-1)
			w.awaited(hot, most/100+3)
			out, errs := w.page(read)
			require.Regexp(t, `^KIND [^\n]*\nsem +`+hot+" ", out)
			require.Equal(t, min(most, 200), strings.Count(out, "\nsem "))
			if most < 200 {
				require.Empty(t, errs)
			} else {
				require.Equal(t, fmt.Sprintf("berth: partial: there is more that was not read: %d names not looked at\n", most-200), errs)
			}
		}
	})
}

// badness is what must be read of each name.
var badness = map[string]string{
	"lock table-a": "stuck: cycle", "lock table-b": "stuck: cycle", "lock report": "stuck: left behind", "lock nightly": "stuck: dead holder",
	"pool mailboxes": "stuck: nothing back", "lock newer": "stuck: newer form", "pool proxies": "resting", "sem paused": "paused",
	"sem gpu": "full",
}

func TestTheNightIsSeenAtAGlance(t *testing.T) {
	testkit.In(t, "gpu", "berth:sem:{gpu}:state", "berth:sem:{gpu}:line", func(t *testing.T, base *testkit.World) {
		w := night{base}
		w.falls()
		read := testkit.Must(inspect.New(w.Redis, inspect.Config{})).In(t)
		out, errs := w.page(read)
		require.Equal(t, `berth: drain of label "old/*" since 2h01m: "new release"; to end it: berth drain --label 'old/*' --stop`+"\n", errs)
		told := func(screen string) {
			t.Helper()
			for name, state := range badness {
				require.Regexp(t, `(?m)^[> ]*`+strings.Replace(regexp.QuoteMeta(name), " ", " +", 1)+" +"+regexp.QuoteMeta(state)+" ", screen)
			}
		}
		told(out)

		watcher := watch.New(read, nil)
		defer watcher.Close()
		overview := watcher.Overview()
		defer overview.Close()
		w.Advance(40 * time.Second)
		p := begin(t, 80, 24)
		p.now = time.Now()
		show := func(value any) {
			p.seq++
			p.send(reading{subject: p.top().subject(), seq: p.seq, value: value, at: time.Now(), now: time.Now(), drains: watcher.DrainsSeen()})
		}
		last, _ := overview.Last()
		require.NoError(t, last.Err)
		show(last.Value)
		told(p.screen())
		p.shows("6 stuck, 0 overdue, 2 meant", `drain of label "old/*" since 2h0`, `: "new release"; D ends it`)

		name := watcher.Name(keyspace.Lock, "table-a", "")
		defer name.Close()
		w.Advance(3 * time.Second)
		p.open(newName(keyspace.Lock, "table-a", ""))
		looked, _ := name.Last()
		require.NoError(t, looked.Err)
		show(looked.Value)
		p.shows("stuck: cycle: 1 of 1 held", "A cycle, by owner, certain", "order-2 (host-", "\nberth lock release table-", " --force\n")
	})
}
