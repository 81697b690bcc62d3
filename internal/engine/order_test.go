package engine

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/wake"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/keyspace"
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

// Between the record of an end and the end of the context there is a moment, in
// which a process that was stopped may come back and ask.
func TestAContextThatIsAskedForHasEndedWhereTheHoldHas(t *testing.T) {
	h := &Hold{e: &Engine{clock: clock.New()}, c: &Claim{m: machine{phase: ended, end: end{err: berth.ErrLost}}}}
	h.ctx, h.cancel = context.WithCancelCause(t.Context())
	require.ErrorIs(t, context.Cause(h.Context()), berth.ErrLost)
}

// A look may come between the grant and what follows from it.
func TestAClaimThatCameAsAnEntryAndIsNoneIsNeverHanded(t *testing.T) {
	for name, entry := range map[string]*Entry{"an entry": {}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			c := &Claim{ID: "a", Name: "door", MayWait: true}
			c.begins(context.Background(), 0, false)
			c.inside.Store(true)
			c.on(&event{kind: evAsk})
			c.on(&event{kind: evGranted, entry: entry, confirmed: true})
			fx := c.on(&event{kind: evLook})
			if !fx.has(doReturn) || errors.Is(fx.result, berth.ErrDraining) == (entry != nil) {
				t.Errorf("do %b, result %v", fx.do, fx.result)
			}
			if got := c.see().phase; (got == held) != (entry != nil) {
				t.Errorf("it is %s", phaseNames[got])
			}
		})
	}
}

// waiter is an engine in which one claim waits, for x.
func waiter() (*Engine, *Claim) {
	e := New(Config{Clock: clock.New(), Kinds: []keyspace.Kind{""}, Scripts: &line6s{}})
	c := &Claim{ID: "n.1", Name: "x", MayWait: true, Record: Record{Wait: 6 * second, Lease: 6 * second, Weight: 1}}
	c.begins(context.Background(), 0, false)
	c.m.phase, c.m.news.secret, c.m.place.left = waiting, "s", 6*second
	e.claims[c.ID] = c
	e.lines[Line{Name: "x"}] = &line{}
	return e, c
}

func TestAPushIsForTheClaimThatItNames(t *testing.T) {
	push := func(word, name, claim string) wake.Message {
		return wake.Message{Word: word, Name: name, Fields: []string{claim, "9", "6000", "r", "s"}}
	}
	synctest.Test(t, func(t *testing.T) {
		e, c := waiter()
		before := c.see()
		for _, m := range []wake.Message{
			{}, {Word: "granted", Name: "x"}, push("granted", "x", "nobody.1"), push("granted", "y", "n.1"), push("a word to come", "x", "n.1"),
		} {
			e.deliver(m)
			require.Equal(t, before, c.see(), "%v", m)
		}
		e.deliver(push("granted", "x", "n.1"))
		m := c.see()
		require.Equal(t, granted, m.phase)
		require.Equal(t, gift{9, "r"}, gift{m.grant.fence, m.grant.resource})
		e.beats.Stop()
	})
}

// What no deadline is delays nothing, and nothing is set later than it was.
func TestAPushSetsTheTimerOfALineOnlySooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := waiter()
		defer e.stopTimers()
		next := func(ms string) time.Duration {
			e.deliver(wake.Message{Word: "next", Name: "x", Fields: []string{ms}})
			e.deliver(wake.Message{Word: "next", Name: "y", Fields: []string{ms}})
			return e.lines[Line{Name: "x"}].due
		}
		require.Equal(t, 500*time.Millisecond, next("500"))
		for _, none := range []string{"-50", "501", strconv.Itoa(farthestPush + 1), "27670116110564", "18446744073710", "9223372036854775807"} {
			require.Equal(t, 500*time.Millisecond, next(none), none)
		}
		require.Equal(t, 400*time.Millisecond, next("400"))
		require.Equal(t, time.Millisecond, next("0"))
	})
}
