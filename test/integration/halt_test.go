package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// Nobody calls anything at the end of a pause: who paused is dead, and no heartbeat is due for 20 s.
func TestAPauseEndsByItselfThoughWhoPausedIsDead(t *testing.T) {
	const lasts = 2 * time.Second
	w := shared(t)
	lag, n := w.measure(), w.node(node.Config{Lease: time.Minute})
	sem := w.sem(n, "gpu", 1)
	held := w.take(sem, nil)
	q := w.queue(sem, nil, 1)
	c := w.spawn(safe)
	before := w.now()
	require.Empty(t, c.ask(order{Do: "pause", Name: "gpu", By: lasts}).Err)
	after := w.now()
	lag.reset()
	c.kill()
	require.NoError(t, held.Release(w.Within(patience)))
	require.NoError(t, semaphore.NewOperator(n).Resize(w.Within(patience), "gpu", 2, nil))
	due := max(after+lasts.Milliseconds(), w.now()) // these calls may have taken longer than the pause
	p := q.Wait(w)
	granted := w.look("gpu").records[p.ID()].Granted.UnixMilli()
	require.GreaterOrEqual(t, granted, before+lasts.Milliseconds(), "granted during the pause")
	require.LessOrEqual(t, granted-due, lag.allow(slack, 2).Milliseconds())
}

// A pause is there on the replica that takes over, and what is given back is granted at its end.
func TestAPauseOutlivesAFailover(t *testing.T) {
	t.Parallel()
	w := newFailoverWorld(t, harness.Sentinel(t), time.Minute)
	held, waiters := w.hold(), w.queue(3)
	pause := func(lasts time.Duration) {
		for _, kind := range w.kinds {
			require.NoError(t, w.pause(w.Within(patience), kind, lasts))
		}
	}
	pause(time.Hour)
	w.replicated()
	w.d.Failover(t)
	for _, kind := range w.kinds {
		require.NoError(t, held[kind].Release(w.Within(patience)))
		_, err := w.try[kind](context.Background())
		require.ErrorContains(t, err, "paused for", kind)
		for _, q := range waiters[kind] {
			require.False(t, q.Over(), kind)
		}
	}
	pause(time.Second)
	w.turns(held, waiters)
}

// Three processes get and give back all the time, and a fourth one begins when all names are paused.
func TestAPauseOfAllNamesBindsEveryProcess(t *testing.T) {
	w := private(t)
	names := []string{"a", "b", "c"}
	var working []*child
	for range 3 {
		c, _ := w.work("", names...)
		working = append(working, c)
	}
	grants := func() (sum int) {
		for _, c := range working {
			sum += c.ask(order{Do: "grants"}).Count
		}
		return sum
	}
	ops := w.node(node.Config{}).Operator()
	all, err := ops.PauseAll(w.Within(patience), time.Hour, "moving house")
	require.NoError(t, err)
	require.Equal(t, len(names), all.Names)
	for _, name := range names { // who was granted it before counts that before giving it back
		w.Await("nobody holds it, and who comes waits", func() bool { v := w.look(name); return len(v.holds) == 0 && v.waiting() > 0 })
	}
	before := grants()
	fresh := w.spawn(safe).queue("fresh", 1, 1)
	require.Equal(t, before, grants(), "somebody was granted something since")

	_, err = ops.UnpauseAll(w.Within(patience))
	require.NoError(t, err)
	require.Empty(t, working[0].hear(fresh).Err)
	w.Await("they go on", func() bool { return grants() > before })
}
