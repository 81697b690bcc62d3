package gate

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/clock"
)

// world is a gate in virtual time.
type world struct {
	*testing.T
	*Gate
	door  *Door
	rooms int // how often heartbeats were told of room
}

func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, Gate: New(clock.New(), useful)}
		w.door = w.Door()
		w.Heartbeats(func() { w.rooms++ })
		test(w)
	})
}

// fill sends as many asks as may pass, and returns how many those are.
func (w *world) fill() (n int) {
	for w.door.Try() {
		n++
	}
	return n
}

// answers has so many asks answered that were sent so long ago.
func (w *world) answers(n int, took time.Duration) {
	for range n {
		w.door.Leave(w.clock.Now() - took)
	}
}

// asks has so many wait at the gate, one after the other, and tells who gets in.
func (w *world) asks(ctx context.Context, closing chan struct{}, n int) (in chan int, gone chan int) {
	in, gone = make(chan int, n), make(chan int, n)
	for i := range n {
		go func() {
			if w.door.Enter(ctx, closing, nil) {
				in <- i
			} else {
				gone <- i
			}
		}()
		synctest.Wait()
	}
	return in, gone
}

func TestAsksPassInTheOrderInWhichTheyCame(t *testing.T) {
	inWorld(t, func(w *world) {
		require.Equal(w, Most, w.fill())
		in, _ := w.asks(context.Background(), nil, 100)
		for i := range 100 {
			require.False(w, w.door.Try(), "nobody passes by")
			w.answers(1, time.Millisecond)
			require.Equal(w, i, <-in)
		}
	})
}

func TestHeartbeatsPassBeforeAsks(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fill()
		in, _ := w.asks(context.Background(), nil, 1)
		require.False(w, w.Admit())
		require.Zero(w, w.rooms)
		w.answers(1, time.Millisecond)
		require.Equal(w, 1, w.rooms, "they are told of the room")
		synctest.Wait()
		require.Empty(w, in, "no ask takes it")
		require.True(w, w.Admit())
		w.Take(Beat(200))
		w.Waive()
		synctest.Wait()
		require.Empty(w, in, "there is no room")
		w.Leave(Beat(200), w.clock.Now())
		require.Zero(w, <-in)
	})
}

// Their claims may have left meanwhile.
func TestHeartbeatsThatAreNotDueAnyMoreKeepNobodyOut(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fill()
		require.False(w, w.Admit())
		in, _ := w.asks(context.Background(), nil, 1)
		w.answers(1, time.Millisecond)
		w.Waive()
		require.Zero(w, <-in)
	})
}

func TestWhoLeavesTheGateLeavesNothingBehind(t *testing.T) {
	for name, ends := range map[string]func(cancel func(), closing chan struct{}){
		"the caller": func(cancel func(), _ chan struct{}) { cancel() },
		"the client": func(_ func(), closing chan struct{}) { close(closing) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.fill()
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				closing := make(chan struct{})
				in, gone := w.asks(ctx, closing, 10)
				ends(cancel, closing)
				for range 10 {
					<-gone
				}
				require.Empty(w, in)
				w.answers(Most, time.Millisecond)
				require.Equal(w, Most, w.fill(), "all places are free")
			})
		})
	}
}

func TestLateAnswersMakeTheWindowSmallAndTimelyOnesLargeAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		time.Sleep(time.Minute)
		w.fill()
		w.answers(Most, time.Millisecond)
		for window := Most; window > Least; window /= 2 {
			require.Equal(w, window, w.fill())
			time.Sleep(time.Second)
			w.answers(window, time.Second)
			require.True(w, w.Strained())
		}
		require.Equal(w, Least, w.fill(), "no less")
		time.Sleep(time.Second)
		w.answers(Least, time.Second)
		rounds := 0
		for inside := w.fill(); w.Strained(); inside = w.fill() {
			require.GreaterOrEqual(w, inside, Least)
			w.answers(inside, time.Millisecond)
			rounds++
		}
		require.Less(w, rounds, 40)
	})
}

// Calls that were sent together are late together, and that is one piece of news.
func TestTheWindowHalvesOnceForAllThatWasInFlight(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fill()
		w.answers(1, time.Millisecond)
		for range Most - 1 {
			time.Sleep(time.Second)
			w.door.Leave(0)
		}
		require.Equal(w, Most/2, w.fill())
	})
}

// A client with few calls would need hours for that.
func TestTheWindowDoublesAfterACalmMinute(t *testing.T) {
	inWorld(t, func(w *world) {
		time.Sleep(time.Minute)
		w.fill()
		w.answers(Most, time.Millisecond)
		for window := Most; window > Most/4; window /= 2 {
			w.fill()
			time.Sleep(time.Second)
			w.answers(window, time.Second)
		}
		for range 2 {
			require.True(w, w.Strained())
			time.Sleep(time.Minute)
			require.True(w, w.door.Try())
			w.answers(1, time.Millisecond)
		}
		require.False(w, w.Strained())
	})
}

// A server that is far away is not late.
func TestAFarServerKeepsItsWindow(t *testing.T) {
	inWorld(t, func(w *world) {
		time.Sleep(time.Minute)
		for range 100 {
			w.answers(w.fill(), 300*time.Millisecond)
		}
		require.Equal(w, Most, w.fill())
	})
}

func TestWhateverIsHeavyPassesWhereThereIsRoom(t *testing.T) {
	inWorld(t, func(w *world) {
		for range Most - 1 {
			require.True(w, w.door.Try())
		}
		require.True(w, w.Admit())
		w.Take(10 * Most)
		require.False(w, w.Admit())
		require.False(w, w.door.Try())
		w.Leave(10*Most, unsent)
		require.True(w, w.Admit())
	})
}
