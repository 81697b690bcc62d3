package gate

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// full has the asks of one kind take all that the window has, and some wait. It returns the door of another kind.
func (w *world) full(line int) *Door {
	require.Equal(w, Most, w.fill())
	w.asks(context.Background(), nil, line)
	return w.Door()
}

// through has so many asks pass a door, one after the other, and returns how many did at once.
func through(d *Door, n int) int {
	in := make(chan bool, n)
	for range n {
		go func() { in <- d.Enter(context.Background(), nil, nil) }()
		synctest.Wait()
	}
	return len(in)
}

func TestAKindKeepsNoOtherKindOut(t *testing.T) {
	inWorld(t, func(w *world) {
		other := w.full(100)
		require.Equal(w, Share, through(other, 100))
		for range 100 {
			other.Leave(w.clock.Now())
		}
		synctest.Wait()
		require.Zero(w, other.line.Len(), "each makes room for the next of its kind")
		require.Equal(w, 100, w.door.line.Len(), "and for none of the others")
		w.answers(Most+100, time.Millisecond)
		require.Zero(w, w.inside.Load())
		require.Zero(w, w.door.beside.Load()+other.beside.Load())
	})
}

func TestAKindsAsksPassInTheOrderInWhichTheyCame(t *testing.T) {
	inWorld(t, func(w *world) {
		other := w.full(1)
		first := w.door
		w.door = other
		in, _ := w.asks(context.Background(), nil, Share+3)
		for i := range Share {
			require.Equal(w, i, <-in)
		}
		require.False(w, other.Try(), "nobody passes by")
		first.Leave(w.clock.Now())
		synctest.Wait()
		require.Empty(w, in, "who came first among all takes a place in the window")
		first.Leave(w.clock.Now())
		require.Equal(w, Share, <-in)
		other.Leave(w.clock.Now())
		synctest.Wait()
		require.Empty(w, in, "as many as its share are inside")
		other.Leave(w.clock.Now())
		require.Equal(w, Share+1, <-in)
		other.Leave(w.clock.Now())
		require.Equal(w, Share+2, <-in)
	})
}

// A share of each kind in front of them would keep the heartbeats of a weak server's waits out.
func TestHeartbeatsThatWaitPassBeforeAnyShare(t *testing.T) {
	inWorld(t, func(w *world) {
		other := w.full(1)
		require.False(w, w.Admit())
		require.Zero(w, through(other, 3))
		w.Waive()
		synctest.Wait()
		require.Zero(w, other.line.Len())
		w.answers(1, time.Millisecond)
		synctest.Wait()
		require.Zero(w, w.door.line.Len())
	})
}

func TestWhoLeavesTheLineOfADoorLeavesNoTrace(t *testing.T) {
	inWorld(t, func(w *world) {
		other := w.full(1)
		require.Equal(w, Share, through(other, Share))
		ctx, cancel := context.WithCancel(context.Background())
		w.door, other = other, w.door
		in, gone := w.asks(ctx, nil, 2)
		cancel()
		require.Equal(w, 1, <-gone+<-gone)
		for range Share {
			w.door.Leave(unsent)
		}
		require.Empty(w, in)
		for range Most + 1 {
			other.Leave(unsent)
		}
		require.Zero(w, w.inside.Load()+w.waiting.Load()+other.asks.Load()+w.door.asks.Load())
	})
}
