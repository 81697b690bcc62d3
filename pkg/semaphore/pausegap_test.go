package semaphore_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// isPaused has a call that does not wait be refused for the pause.
func (n *proc) isPaused(name string) {
	n.w.T.Helper()
	_, err := n.on(name).TryAcquire(context.Background(), nil)
	var refused *berth.AcquireError
	require.ErrorAs(n.w.T, err, &refused, name)
	require.Equal(n.w.T, berth.ReasonPaused, refused.Reason, name)
}

// The notice goes with the data of its server, and with it the pauses that the names had.
func TestAPauseOfAllNamesThatWasHeardOutlivesALoss(t *testing.T) {
	for name, lose := range map[string]func(w *world) func(){
		"flush":      func(w *world) func() { return func() { w.Do("FLUSHALL") } },
		"older data": func(w *world) func() { return w.Snapshot() },
		"an older ended one": func(w *world) func() {
			w.Notice("pause:sem", 0, "")
			return w.Snapshot()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n, ops := w.node(), w.node()
				restore := lose(w)
				w.Advance(time.Second)
				ops.pauseAll(2 * time.Minute)
				start := w.Now()
				waits := n.queueOn(context.Background(), n.on("met"), nil)
				n.isPaused("met")
				restore()
				for i := range 300 {
					n.isPaused("met")
					n.isPaused(fmt.Sprint("fresh", i))
					w.Advance(100 * ms)
				}
				require.True(t, waits.Pending())
				w.Until(start + 110*time.Second)
				n.isPaused("met")
				n.isPaused("last")
				waits.GrantedWithin(start+113*time.Second, 100*ms)
				_, err := n.on("fresh").TryAcquire(context.Background(), nil)
				require.NoError(t, err)
			})
		})
	}
}

func TestAnOperatorEndsAPauseOfAllNamesWhoseNoticeWasLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n, ops := w.node(), w.node()
		ops.pauseAll(time.Hour)
		n.isPaused("a")
		w.Do("FLUSHALL")
		require.NoError(t, ops.Operator().Unpause(ctx, keyspace.Sem, "apart"))
		p, err := n.on("apart").TryAcquire(ctx, nil)
		require.NoError(t, err)
		require.NoError(t, p.Release(ctx))
		n.isPaused("a")
		_, err = ops.Operator().UnpauseAll(ctx)
		require.NoError(t, err)
		_, err = n.on("a").TryAcquire(ctx, nil)
		require.NoError(t, err)
	})
}

// A process comes back that was cut off while all names were paused, with calls that it makes then, and with one
// that it has made all the while.
func TestWhoWasCutOffDuringAPauseOfAllNamesGetsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, ops := w.node(), w.node()
		n.connect()
		n.Cut()
		w.Advance(time.Second)
		q := n.queueOn(context.Background(), n.on("asked for"), nil)
		ops.pauseAll(time.Hour)
		n.Mend()
		for i := range 30 {
			n.isPaused(fmt.Sprint("fresh", i))
		}
		w.Advance(2 * lease)
		require.True(t, q.Pending())
		require.False(t, w.held("asked for"))
		require.False(t, w.held("fresh0"))
		_, err := ops.Operator().UnpauseAll(context.Background())
		require.NoError(t, err)
		w.Advance(lease)
		require.False(t, q.Pending())
	})
}

// held says whether somebody holds a name.
func (w *world) held(name string) bool {
	w.T.Helper()
	look := *w.World
	look.Name = name
	n, err := look.Look()
	require.NoError(w.T, err)
	return n.Held > 0
}

// The call reaches the server when the pause has begun, and is granted by a name of which that has not heard.
func TestAGrantFromBeforeTheNodeHeardOfAPauseDoesNotStand(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, ops := w.node(node.Config{Lease: time.Minute, CallTimeout: 30 * time.Second}), w.node()
		n.connect()
		w.Advance(time.Second)
		n.Stall()
		q := n.queueOn(context.Background(), n.on("slow"), nil)
		ops.pauseAll(time.Hour)
		n.Flow()
		w.Advance(lease)
		require.True(t, q.Pending(), "%v", q.Err)
		require.False(t, w.held("slow"))
		q.Cancel(nil)
	})
}

func TestWhoWasCutOffDuringADrainGetsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n, other := w.node(node.Config{Label: "worker/7"}), w.node()
		n.connect()
		held := other.take(1, nil)
		waits := n.queue(1, nil)
		w.Advance(time.Second)
		n.Cut()
		require.NoError(t, held.Release(ctx)) // it is granted now, and cannot hear of that
		w.drains("worker*", "drain")
		asks := n.queueOn(ctx, n.on("asked for"), nil)
		w.Advance(7 * time.Second)
		n.Mend()
		_, err := n.on("fresh").TryAcquire(ctx, nil)
		require.ErrorIs(t, err, berth.ErrDraining)
		w.Advance(lease)
		require.ErrorIs(t, waits.Err, berth.ErrDraining)
		require.ErrorIs(t, asks.Err, berth.ErrDraining)
		synctest.Wait()
		require.Zero(t, w.stats().Held)
		require.False(t, w.held("asked for"))
	})
}

// Where the server answers, and its user may not read the notice, a look costs one trip each 5 s.
func TestANoticeThatMayNotBeReadStopsNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "HMGET" {
				return link.Refuse("NOPERM no permissions")
			}
			return link.Pass
		})
		start := w.Now()
		for range 100 {
			p := n.take(1, nil)
			require.NoError(t, p.Release(context.Background()))
			w.Advance(100 * ms)
		}
		require.Equal(t, start+10*time.Second, w.Now())
		require.LessOrEqual(t, n.Count("HMGET"), 8)
	})
}
