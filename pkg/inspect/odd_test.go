package inspect_test

import (
	"context"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// odd are replies, as they go over the wire, that some plain read does not expect.
var odd = map[string]string{
	"nil":            "$-1\r\n",
	"no array":       "*-1\r\n",
	"nothing":        "*0\r\n",
	"one":            "*1\r\n$4\r\n7777\r\n",
	"two":            "*2\r\n$4\r\n7777\r\n$4\r\n8888\r\n",
	"long":           "*5000\r\n" + strings.Repeat("$4\r\n7777\r\n", 5000),
	"a number":       ":7\r\n",
	"a huge number":  ":9223372036854775807\r\n",
	"huge numbers":   "*2\r\n:9223372036854775807\r\n:-9223372036854775808\r\n",
	"text":           "$3\r\nodd\r\n",
	"a float":        ",inf\r\n",
	"nested":         "*2\r\n*1\r\n:7\r\n*0\r\n",
	"nothing nested": "*2\r\n$1\r\n0\r\n*1\r\n*0\r\n",
	"a map":          "%1\r\n$4\r\n7777\r\n$4\r\n8888\r\n",
	"a lone field":   "*2\r\n$1\r\n0\r\n*1\r\n$3\r\nn:x\r\n",
	"no end":         "*2\r\n$4\r\n7777\r\n*0\r\n",
	"an error":       "-ERR odd\r\n",
	"another type":   "-WRONGTYPE odd\r\n",
	"another server": "-MOVED 1 127.0.0.1:1\r\n",
}

// verbs are those of the plain reads.
var verbs = []string{"TIME", "MGET", "HMGET", "HLEN", "ZMSCORE", "ZRANGE", "ZRANGEBYSCORE", "ZCOUNT", "SCAN", "HSCAN", "INFO"}

// reads are the calls of a process that read plainly. There is something of all kinds to be read.
func (w *world) reads() (p *process, calls []func(ctx context.Context) error) {
	w.T.Helper()
	by := w.process("by")
	by.permit("", "gpu", 2, &semaphore.AcquireOptions{Weight: 2})
	by.awaitPermit("", "gpu", 2, nil)
	by.lock("nightly", "owner", nil)
	by.lock("nightly", "owner", &qlock.LockOptions{Conflict: qlock.WorkThrough})
	by.awaitLock("nightly", "other", nil)
	by.lock("thin", "", nil)
	pool := by.filled("a", "b", "c")
	by.take(pool, &allocator.AllocateOptions{Resource: "a"})
	by.await(pool, &allocator.AllocateOptions{Resource: "a"})
	require.NoError(w.T, pool.Bind(ctx, "bound", "b", nil))
	require.NoError(w.T, pool.Rest(ctx, "c", time.Hour, "ill", nil))

	p = w.made(node.Config{Label: "label", Swarm: node.SwarmConfig{Auto: true}})
	job := once.New(p.Node, "daily", once.Config{Every: time.Hour})
	testkit.Must(job.Do(ctx, func(context.Context, *once.Run) error { return nil })).In(w.T)
	look := testkit.Must(inspect.New(p.Redis, inspect.Config{})).In(w.T)
	mine, pools := p.pool(allocator.Config[string]{}), allocator.NewOperator(p.Node)
	w.Advance(time.Second)

	ops := p.Operator()
	for kind, name := range named {
		page := testkit.Must(w.look.Waiters(ctx, kind, name, "", 0)).In(w.T)
		claim := page.Items[0].ID
		o := testkit.Must(look.Overview(inspect.NameFilter{})).In(w.T)
		v := testkit.Must(look.View(kind, name)).In(w.T)
		calls = append(calls,
			func(ctx context.Context) error { _, err := look.Name(ctx, kind, name); return err },
			func(ctx context.Context) error { _, err := look.Holders(ctx, kind, name, "", 1); return err },
			func(ctx context.Context) error { _, err := look.Waiters(ctx, kind, name, "", 1); return err },
			func(ctx context.Context) error { _, err := look.Explain(ctx, kind, name, claim); return err },
			func(ctx context.Context) error { _, err := o.Read(ctx); return err },
			func(ctx context.Context) error { _, err := v.Read(ctx, claim); return err },
		)
	}
	return p, append(calls,
		func(ctx context.Context) error { _, err := look.Name(ctx, keyspace.Lock, "thin"); return err },
		func(ctx context.Context) error {
			return testkit.Second(look.Names(ctx, inspect.NameFilter{Kinds: []keyspace.Kind{keyspace.Lock, keyspace.Once}, Idle: true}, "", 10))
		},
		func(ctx context.Context) error {
			return testkit.Second(look.Names(ctx, inspect.NameFilter{Waiting: true}, "", 10))
		},
		func(ctx context.Context) error { _, err := look.Claims(ctx, inspect.ClaimFilter{}, "", 10); return err },
		func(ctx context.Context) error { _, err := look.Cycles(ctx, nil); return err },
		func(ctx context.Context) error { _, err := job.Last(ctx); return err },
		func(ctx context.Context) error { _, err := p.Check(ctx); return err },
		func(ctx context.Context) error { return ops.Pause(ctx, keyspace.Sem, "other", time.Second, "") },
		func(ctx context.Context) error { return ops.Unpause(ctx, keyspace.Lock, "other") },
		func(ctx context.Context) error {
			return testkit.Second(ops.Want(ctx, berth.Target{Kind: keyspace.Lock, Name: "nightly"}))
		},
		func(ctx context.Context) error {
			return testkit.Second(ops.Drain(ctx, berth.DrainTarget{Label: "nobody"}, &berth.DrainOptions{Force: true, ForceAfter: time.Second}))
		},
		func(ctx context.Context) error { _, err := ops.Sweep(ctx, keyspace.Lock); return err },
		func(ctx context.Context) error { _, err := pools.Inspect(ctx, "proxies"); return err },
		func(ctx context.Context) error { _, err := pools.Settings(ctx, "proxies"); return err },
		func(ctx context.Context) error { _, err := pools.Resource(ctx, "proxies", "a"); return err },
		func(ctx context.Context) error { return last(pools.Resources(ctx, "proxies")) },
		func(ctx context.Context) error { return last(pools.Bindings(ctx, "proxies")) },
		func(ctx context.Context) error { _, err := mine.Binding(ctx, "bound"); return err },
		func(ctx context.Context) error { return last(mine.FreeInOrder(ctx)) },
		func(ctx context.Context) error { return last(p.Swarm().Info(ctx)) },
		func(ctx context.Context) error { _, err := p.Swarm().Zombies(ctx); return err },
		func(ctx context.Context) error { _, err := p.Swarm().FlushNow(ctx); return err },
	)
}

// last goes through all, and returns the last error.
func last[E any](all iter.Seq2[E, error]) (last error) {
	for _, err := range all {
		if err != nil {
			last = err
		}
	}
	return last
}

// Whatever a server answers to a plain read, no call panics, in no goroutine, and each comes back. Members and fields have a
// prefix here, as all have that Berth writes.
func TestAnOddAnswerToAPlainReadIsAnError(t *testing.T) {
	answers := slices.Sorted(maps.Values(odd))
	inWorld(t, func(w *world) {
		p, calls := w.reads()
		for _, call := range calls {
			require.NoError(t, call(ctx))
		}
		for i, verb := range verbs {
			require.NotZero(t, p.Count(verb), "the calls send %s", verb)
			r := rand.New(rand.NewPCG(1, uint64(i)))
			p.OnCommand(func(c link.Command) link.Fate {
				if c.Name == verb && r.IntN(2) == 0 {
					return link.Answer(answers[r.IntN(len(answers))])
				}
				return link.Pass
			})
			for _, call := range calls {
				ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
				assert.NotPanics(t, func() { _ = call(ctx) }, verb)
				cancel()
			}
			w.Advance(6 * time.Second) // the notices, and the swarm's own reads
		}
	})
}
