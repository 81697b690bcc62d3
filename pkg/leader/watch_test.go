package leader_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
)

// every is how often a Watch of the tests' lease reads.
const every = lease / 3

// told is what a Watch has told.
type told struct {
	at    time.Duration
	label string // "" for nobody
	fence int64
	err   error
}

// watching is a Watch on its way.
type watching struct {
	*testkit.Wait[struct{}]
	mu  sync.Mutex
	all []told // guarded by mu
}

// watch begins to watch; body is what the loop does beside being recorded.
func (n *process) watch(name string, body func()) *watching {
	n.w.T.Helper()
	v := &watching{}
	v.Wait = testkit.Queue(context.Background(), n.w.World, func(ctx context.Context) (none struct{}, _ error) {
		for now, err := range n.named(name, nil).Watch(ctx) {
			t := told{at: n.w.Now(), err: err}
			if now != nil {
				t.label, t.fence = now.Label, now.Fence
			}
			v.mu.Lock()
			v.all = append(v.all, t)
			v.mu.Unlock()
			if body != nil {
				body()
			}
		}
		return none, nil
	})
	n.w.T.Cleanup(func() {
		v.Cancel(nil)
		<-v.Done
	})
	return v
}

// last is what was told last, so many in all.
func (v *watching) last(count int) told {
	v.W.T.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	require.Len(v.W.T, v.all, count)
	return v.all[count-1]
}

func TestCurrentTellsWhoLeads(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.node(node.Config{Label: "a"})
		now, err := a.election(nil).Current(context.Background())
		require.NoError(t, err)
		require.Nil(t, now)
		meta := map[string]string{"zone": "b"}
		c := a.stand(&leader.Config{Meta: meta}, nil)
		began := time.Now()
		w.Advance(time.Second)
		now, err = w.node().election(nil).Current(context.Background())
		require.NoError(t, err)
		require.Equal(t, "a", now.Label)
		require.Equal(t, a.ID(), now.Node)
		require.Equal(t, meta, now.Meta)
		require.Equal(t, c.only().fence, now.Fence)
		require.True(t, began.Equal(now.Granted))
		require.Equal(t, time.Second, now.Held)
		require.Equal(t, lease-time.Second, now.Left)
		a.Die()
		w.Advance(lease - time.Second)
		now, err = w.node().election(nil).Current(context.Background())
		require.NoError(t, err)
		require.Nil(t, now, "its lease has ended, though nobody has looked")
	})
}

func TestWatchTellsEachChangeOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		v := w.node().watch(boss, nil)
		require.Equal(t, told{}, v.last(1), "nobody leads")
		w.Advance(every + ms)
		a := w.node(node.Config{Label: "a"}).stand(nil, nil)
		w.Advance(every)
		first := a.only().fence
		require.Equal(t, told{at: 2 * every, label: "a", fence: first}, v.last(2))
		b := w.node(node.Config{Label: "b"}).stand(nil, nil)
		w.Advance(10 * every)
		v.last(2)
		a.Cancel(nil)
		b.Cancel(nil)
		w.Advance(every)
		require.Equal(t, told{at: 13 * every}, v.last(3), "the newest only")
		c := a.n.stand(nil, nil)
		w.Advance(every)
		require.Equal(t, told{at: 14 * every, label: "a", fence: c.only().fence}, v.last(4))
		v.Cancel(nil)
		<-v.Done
	})
}

func TestWatchReadsOnceInEachThirdOfALease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.node().stand(nil, nil)
		n := w.node()
		n.watch(boss, nil)
		w.Advance(every)
		n.Connected()
		w.Advance(every)
		once := n.Counts()
		n.Fresh()
		w.Advance(9 * every)
		for command, count := range n.Counts() {
			require.Equal(t, 9*once[command], count, command)
		}
		sum := 0
		for _, count := range once {
			sum += count
		}
		require.Equal(t, 3, sum, "%v", once) // MGET and TIME, and HELLO: who answers
	})
}

// A loop that takes its time is told the newest when it comes back, and costs nothing meanwhile.
func TestWatchDoesNotReadWhileItsLoopIsBusy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		v := n.watch(boss, func() { <-time.After(time.Minute) })
		a := w.node(node.Config{Label: "a"}).stand(nil, works(time.Second, nil))
		b := w.node(node.Config{Label: "b"}).stand(nil, nil)
		n.Fresh()
		w.Advance(time.Minute)
		require.Empty(t, n.Counts())
		w.Advance(every)
		require.NoError(t, a.returned())
		require.Equal(t, told{at: time.Minute + every, label: "b", fence: b.only().fence}, v.last(2))
	})
}

func TestWatchTellsOnceThatNothingIsKnown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.node(node.Config{Label: "a"}).stand(nil, nil)
		n := w.node()
		v, vacant := n.watch(boss, nil), n.watch("other", nil)
		require.Equal(t, "a", v.last(1).label)
		vacant.last(1)
		n.Cut()
		w.Until(lease - ms)
		v.last(1)
		w.Until(lease)
		require.ErrorIs(t, vacant.last(2).err, berth.ErrUnavailable)
		require.ErrorIs(t, v.last(2).err, berth.ErrUnavailable, "as soon as its lease may be over")
		require.Empty(t, v.last(2).label)
		w.Advance(time.Minute)
		n.Mend()
		w.Advance(10 * time.Second)
		require.Equal(t, a.only().fence, v.last(3).fence, "who leads, though it has not changed")
		require.NoError(t, vacant.last(3).err, "nobody, though it has not changed")
	})
}

func TestWatchEndsWithItsContextItsNodeAndABadName(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		bad := n.watch("{", nil)
		<-bad.Done
		require.ErrorIs(t, bad.last(1).err, berth.ErrInvalidConfig)
		closed, left := n.watch(boss, nil), n.watch(boss, nil)
		left.Cancel(nil)
		<-left.Done
		left.last(1)
		n.Shut()
		<-closed.Done
		require.ErrorIs(t, closed.last(2).err, berth.ErrClosed)
		n.election(nil).Watch(context.Background())(func(*berth.Holder, error) bool { return false })
	})
}
