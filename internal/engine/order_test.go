package engine

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/wake"
	"github.com/berth-go/berth/pkg/embedded"
)

// line6s is a server that has claims wait, and answers what a test says.
type line6s struct {
	Scripts // of what no test asks
	beat    func(claims []*Claim) Status
	restore func() Status
}

func (l *line6s) Release(context.Context, *Claim, time.Duration) (Parting, error) {
	return Parting{Word: GivenBack, Fence: 9}, nil
}

func (l *line6s) BeatMany(_ context.Context, batches []Batch, answered func(int, Round, error)) {
	for i, b := range batches {
		round := Round{NextDeadline: NextDeadline{In: -1}}
		for range b.Claims {
			round.Status = append(round.Status, l.beat(b.Claims))
		}
		answered(i, round, nil)
	}
}

func (l *line6s) Restore(context.Context, string, []*Claim) (Round, error) {
	return Round{NextDeadline: NextDeadline{In: -1}, Status: []Status{l.restore()}}, nil
}

func (l *line6s) Key(at Line) string { return at.Name }

// onLine runs a test in virtual time with an engine on such a server, and a claim that asks.
func onLine(t *testing.T, l *line6s, r Record, test func(t *testing.T, e *Engine, c *Claim)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, err := embedded.Start()
		require.NoError(t, err)
		defer server.Close()
		redis, err := server.Client()
		require.NoError(t, err)
		defer redis.Close()
		e := New(Config{
			Redis: redis, Scripts: l, Node: "n", Channel: "c", Wait: 6 * second, CallTimeout: 10 * second, CleanupTimeout: second, Clock: clock.New(),
		})
		r.Weight, r.Wait, r.Lease = 1, 6*second, 6*second
		c := &Claim{ID: "n.1", Name: "x", MayWait: true, Record: r}
		c.begins(context.Background(), e.clock.Now(), false)
		require.NoError(t, e.enter(c))
		c.on(&event{kind: evSecret, text: "s"})
		c.on(&event{kind: evAsk})
		test(t, e, c)
		e.work.Done()
		require.NoError(t, e.Close(context.Background()))
	})
}

func isQueued(e *Engine) *event {
	return &event{kind: evQueued, now: e.clock.Now(), start: e.clock.Now(), ticket: 1, text: "a", left: 6 * second}
}

// The place of a claim must not be kept where its hold is.
func TestAPushIsTakenWhenThePlaceIsKept(t *testing.T) {
	unheard := &line6s{beat: func([]*Claim) Status { select {} }}
	onLine(t, unheard, Record{}, func(t *testing.T, e *Engine, c *Claim) {
		var left atomic.Int64 // long until the caller has the hold: a heartbeat may be answered before
		left.Store(int64(6 * second))
		unheard.beat = func([]*Claim) Status { return Status{Word: WordHeld, Left: time.Duration(left.Load()), Fence: 9} }
		ev, taken := isQueued(e), make(chan struct{})
		c.doing.Lock() // as Engine.act does
		fx := c.on(ev)
		go func() { // the connection's goroutine
			defer close(taken)
			e.deliver(wake.Message{Word: "granted", Name: "x", Fields: []string{c.ID, "9", "0", "", "s"}})
		}()
		for range 1000 {
			runtime.Gosched()
		}
		require.Equal(t, waiting, c.see().phase, "the push waits")
		e.perform(c, ev, &fx)
		c.doing.Unlock()
		<-taken
		require.Nil(t, e.await(context.Background(), c))
		require.False(t, c.inLine)
		left.Store(int64(time.Millisecond))
		<-time.After(10 * second)
		require.ErrorIs(t, c.handle.Err(), berth.ErrLost, "its lease ends")
	})
}

func TestARestoreThatEndsAGrantSaysWhy(t *testing.T) {
	l := &line6s{}
	onLine(t, l, Record{}, func(t *testing.T, e *Engine, c *Claim) {
		l.beat = func([]*Claim) Status { return Status{Word: WordWaiting, Left: 6 * second} }
		e.on(c, isQueued(e)) // from here on a heartbeat may ask
		l.restore = func() Status {
			e.hear(c, e.clock.Now(), 0, snapshot{}, Status{Word: WordHeld, Left: 6 * second, Fence: 9})
			return Status{Word: WordGone}
		}
		c.calls.Lock()
		_, err := e.restore(context.Background(), "x", []*Claim{c})
		c.calls.Unlock()
		require.NoError(t, err)
		refusal := e.await(context.Background(), c)
		require.NotNil(t, refusal)
		require.ErrorIs(t, refusal.Cause, berth.ErrReleased)
	})
}

// An answer says something to the group of its owner, and no more than before to the heartbeat.
func TestTheGroupOfAnOwnerCostsNoHeartbeats(t *testing.T) {
	beats := make(map[bool]int)
	for _, grouped := range []bool{false, true} {
		l, begun, n := &line6s{}, time.Duration(0), time.Duration(0)
		onLine(t, l, Record{Owner: "o", MaxHold: 20 * second}, func(t *testing.T, e *Engine, c *Claim) {
			e.joinGroup(c)
			begun = e.clock.Now()
			l.beat = func([]*Claim) Status {
				n++
				<-time.After(5*time.Millisecond + n%3*time.Millisecond) // on its way there
				return Status{Word: WordHeld, Left: min(6*second, begun+20*second-e.clock.Now()), Fence: 9}
			}
			e.on(c, &event{kind: evGranted, start: begun, left: 6 * second, gift: gift{fence: 9}, confirmed: true, ticket: 1})
			require.Nil(t, e.await(context.Background(), c))
			if grouped { // a call of the same owner that would extend what it holds, and gets an error
				other := &Claim{ID: "n.2", Name: "x", Record: c.Record, Extends: second}
				other.begins(context.Background(), e.clock.Now(), false)
				require.NoError(t, e.enter(other))
				e.joinGroup(other)
				e.on(other, &event{kind: evLeave, cause: cutShort})
				e.work.Done()
			}
			require.Equal(t, grouped, c.part.Load() != nil)
			<-time.After(30 * second)
			require.ErrorIs(t, c.handle.Err(), berth.ErrExpired)
			beats[grouped] = int(n)
		})
	}
	require.Equal(t, beats[false], beats[true])
}
