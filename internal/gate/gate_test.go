package gate

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	useful = 3 * time.Second
	// unsent is the start of a call that was not sent.
	unsent time.Duration = -1
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

// asked is a context that tells when somebody asks whether it has ended.
type asked struct {
	context.Context
	is func()
}

func (a asked) Err() error {
	a.is()
	return a.Context.Err()
}

// A context may find that a hold is over, and then tells an observer, who may take his time.
func TestTheGateAsksNoContextWhileItKeepsOthersOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(clock.New(), useful)
		d := g.Door()
		for range Most {
			require.True(t, d.Try())
		}
		looks := 0
		ctx := asked{context.Background(), func() {
			looks++
			require.True(t, g.mu.TryLock(), "its lock is free")
			g.mu.Unlock()
		}}
		entered := make(chan bool)
		go func() { entered <- d.Enter(ctx, nil, nil) }()
		synctest.Wait() // in line
		d.Leave(unsent)
		require.True(t, <-entered)
		require.Positive(t, looks)
	})
}
