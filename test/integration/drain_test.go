package integration

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/node"
)

// These processes drain.
const (
	worker  = "worker/"
	workers = worker + "*"
)

// quiet is a node whose pushes are all refused: what it says is heard by heartbeats, and by reading the notice.
func (w *world) quiet() *node.Node {
	w.Helper()
	w.do("ACL", "SETUSER", "quiet", "on", ">secret", "~*", "&*", "+@all", "-publish")
	return w.node(node.Config{}, func(o *rueidis.ClientOption) { o.Username, o.Password = "quiet", "secret" })
}

// work spawns a process of the workers, and returns when it has been granted something of what it churns.
func (w *world) work(label string, names ...string) (c *child, churns <-chan answer) {
	w.Helper()
	c = w.spawnAs(spec{Label: label, Lease: safe})
	churns = c.send(order{Do: "churn", Names: names, Capacity: 1, Rest: 30 * time.Millisecond})
	w.Await("the child is at work", func() bool { return c.ask(order{Do: "grants"}).Count > 0 })
	return c, churns
}

// claimsOf are the claims of the workers that some names have.
func (w *world) claimsOf(label string, names ...string) (found []string) {
	w.Helper()
	for _, name := range names {
		for claim, r := range w.look(name).records {
			if strings.HasPrefix(r.Label, label) {
				found = append(found, claim)
			}
		}
	}
	return found
}

// Three processes get and give back all the time, and hear no push of the drain.
func TestADrainReachesProcessesThatHearNoPush(t *testing.T) {
	w := private(t)
	names := []string{"a", "b", "c"}
	kept := w.spawnAs(spec{Label: worker + "kept", Lease: safe})
	kept.acquire("kept", 1)
	heeds := kept.send(order{Do: "heed", Name: "kept"})
	var three []*child
	var churns []<-chan answer
	for _, n := range []string{"1", "2", "3"} {
		c, churn := w.work(worker+n, names...)
		three, churns = append(three, c), append(churns, churn)
	}
	web, _ := w.work("web", names...)
	ops := w.quiet()

	drained, err := ops.Operator().Drain(w.Within(patience), berth.DrainTarget{Label: workers}, 0)
	require.NoError(t, err)
	require.Zero(t, drained.Left)
	require.Zero(t, drained.Ended, "nothing ends by force")
	require.Empty(t, w.claimsOf(worker, append(names, "kept")...), "what was drained has nothing any more")
	require.Empty(t, kept.hear(heeds).Err, "it has heard that the hold is wanted")
	for i, c := range three {
		before := c.ask(order{Do: "grants"}).Count
		end := c.hear(churns[i])
		require.Contains(t, end.Is, "draining", end.Err)
		require.Equal(t, before, c.ask(order{Do: "grants"}).Count, "it has got something since")
		require.Contains(t, c.ask(order{Do: "acquire", Name: "new", Capacity: 1}).Is, "draining")
	}
	before := web.ask(order{Do: "grants"}).Count
	w.Await("the others go on", func() bool { return web.ask(order{Do: "grants"}).Count > before })

	require.NoError(t, ops.Operator().StopDrain(w.Within(patience), berth.DrainTarget{Label: workers}))
	w.Await("they hear of the end", func() bool {
		return three[0].ask(order{Do: "acquire", Name: "new", Capacity: 1}).Err == ""
	})
}

// A process that stands still hears nothing: at the deadline its hold ends by force.
func TestADrainEndsWhatAStoppedProcessHolds(t *testing.T) {
	w := private(t)
	c := w.spawnAs(spec{Label: worker + "1", Lease: time.Minute}) // it does not end before the deadline
	claim := c.acquire("gpu", 1).Claim
	c.stop()
	next := w.queue(w.sem(w.node(node.Config{Lease: safe}), "gpu", 1), nil, 1) // it hears by a heartbeat

	drained, err := w.quiet().Operator().Drain(context.Background(), berth.DrainTarget{Label: workers}, 8*time.Second)
	require.NoError(t, err)
	require.Equal(t, berth.Drained{Asked: 1, Ended: 1, Left: drained.Left}, drained)
	require.Empty(t, w.claimsOf(worker, "gpu"))
	require.NotEqual(t, claim, next.Wait(w).ID(), "who waited has it")
	c.signal(syscall.SIGCONT)
	w.Await("the process hears that its hold has ended", func() bool { return c.ask(order{Do: "err", Name: "gpu"}).Err != "" })
	require.Contains(t, c.ask(order{Do: "acquire", Name: "new", Capacity: 1}).Is, "draining")
}
