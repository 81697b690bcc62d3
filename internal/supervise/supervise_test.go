package supervise

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
)

// fakeHold is a hold whose deadline a test moves. Like the real one it tells the
// end by its clock, and by Done.
type fakeHold struct {
	clock  clock.Clock
	done   chan struct{}
	wanted chan struct{}

	mu    sync.Mutex
	end   time.Duration // guarded by mu: the local deadline
	cause error         // guarded by mu
	timer *time.Timer   // guarded by mu: ends it at the deadline
	calls int           // guarded by mu: how often Left was asked
}

func newHold(c clock.Clock, left time.Duration) *fakeHold {
	h := &fakeHold{clock: c, done: make(chan struct{}), wanted: make(chan struct{}), end: never}
	if left != berth.Forever {
		h.renew(left)
	}
	return h
}

// renew moves the deadline to left from now on.
func (h *fakeHold) renew(left time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause != nil {
		return
	}
	h.end = h.clock.Now() + left
	if h.timer != nil {
		h.timer.Stop()
	}
	h.timer = time.AfterFunc(left, func() { h.lose(berth.ErrLost) })
}

func (h *fakeHold) lose(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause == nil {
		h.cause = cause
		close(h.done)
	}
}

func (h *fakeHold) Done() <-chan struct{}   { return h.done }
func (h *fakeHold) Wanted() <-chan struct{} { return h.wanted }

func (h *fakeHold) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause == nil && h.end <= h.clock.Now() {
		h.cause = berth.ErrLost
		close(h.done)
	}
	return h.cause
}

func (h *fakeHold) Left() time.Duration {
	ended := h.Err() != nil
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	switch {
	case ended:
		return 0
	case h.end == never:
		return berth.Forever
	}
	return h.end - h.clock.Now()
}

// fakeCommand writes down what is done to it, and when.
type fakeCommand struct {
	clock   clock.Clock
	exited  chan struct{}
	stopped chan struct{}
	pause   time.Duration // how long Suspend takes
	polite  time.Duration // how long it goes on after SIGTERM; never for one that ignores it
	remains time.Duration // how long what it has started goes on after SIGTERM

	mu     sync.Mutex
	log    []string      // guarded by mu
	goneAt time.Duration // guarded by mu: when all it started has ended
}

func (c *fakeCommand) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, fmt.Sprintf("%s ", c.clock.Now())+fmt.Sprintf(format, args...))
}

// exit ends the process, once.
func (c *fakeCommand) exit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.exited:
	default:
		close(c.exited)
	}
}

func (c *fakeCommand) Exited() <-chan struct{}  { return c.exited }
func (c *fakeCommand) Stopped() <-chan struct{} { return c.stopped }
func (c *fakeCommand) Resume()                  { c.note("resume") }
func (c *fakeCommand) Pass(sig os.Signal)       { c.note("pass %v", sig) }

func (c *fakeCommand) Gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clock.Now() >= c.goneAt
}

func (c *fakeCommand) Terminate() {
	c.note("TERM")
	if c.remains != 0 {
		c.mu.Lock()
		c.goneAt = c.clock.Now() + c.remains
		c.mu.Unlock()
	}
	if c.polite != never {
		time.AfterFunc(c.polite, c.exit)
	}
}

func (c *fakeCommand) Kill() {
	c.note("KILL")
	c.exit()
}

// Suspend takes as long as this process is stopped; the clock goes on.
func (c *fakeCommand) Suspend() {
	c.note("suspend")
	time.Sleep(c.pause)
}

// world is one Wait in virtual time.
type world struct {
	hold    *fakeHold
	command *fakeCommand
	signals chan os.Signal
	passed  os.Signal // Config.OnWanted, which the script may set before it sleeps
	said    []string
}

// inWorld runs Wait in a bubble with a hold of the given length and a grace of
// 1 s, under a command that ignores SIGTERM unless the script says otherwise.
// The script runs beside it. The hold may end by a limit of its own where the last argument says so.
func inWorld(
	t *testing.T, left time.Duration, script func(w *world), limited ...func(time.Duration) bool,
) (w *world, err error) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		c := clock.New()
		w = &world{
			hold:    newHold(c, left),
			command: &fakeCommand{clock: c, exited: make(chan struct{}), stopped: make(chan struct{}, 1), polite: never},
			signals: make(chan os.Signal, 1),
		}
		go script(w)
		synctest.Wait()
		err = Wait(Config{
			Hold: w.hold, Command: w.command, Grace: time.Second, Limited: append(limited, nil)[0], Clock: c,
			Signals: w.signals, OnWanted: w.passed, Say: func(line string) { w.said = append(w.said, line) },
		})
		synctest.Wait() // for the script to end
	})
	return w, err
}

// Under a hold of 10 s, or without end, and with a grace of 1 s.
func TestWhatBecomesOfACommandAndItsHold(t *testing.T) {
	const tells = ": SIGTERM sent, SIGKILL follows in 1s"
	after := func(d time.Duration, do func(w *world)) func(w *world) {
		return func(w *world) {
			time.Sleep(d)
			do(w)
		}
	}
	loses := func(cause error) func(w *world) { return func(w *world) { w.hold.lose(cause) } }
	renews := func(w *world) { w.hold.renew(10 * time.Second) }
	exits := func(w *world) { w.command.exit() }
	pauses := func(d time.Duration) func(w *world) { return func(w *world) { w.command.pause = d } }
	suspends := func(w *world) { w.command.stopped <- struct{}{} }
	interrupts := func(w *world) { w.signals <- os.Interrupt }
	then := func(all ...func(w *world)) func(w *world) {
		return func(w *world) {
			for _, do := range all {
				do(w)
			}
		}
	}
	for name, row := range map[string]struct {
		script func(w *world)
		err    error
		log    string
		said   []string // how that begins
	}{
		"a command that ends under a living hold is left alone":             {after(8*time.Second, exits), nil, "", nil},
		"a command that ends under a living hold without end is left alone": {after(time.Hour, exits), nil, "", nil},
		"without a renewal TERM comes at the deadline less the grace, and KILL at the deadline": {
			func(*world) {}, berth.ErrLost, "9s TERM, 10s KILL",
			[]string{"no renewal in time" + tells, "the lease is lost: SIGKILL sent"},
		},
		"what ends in its grace was told to": {
			func(w *world) { w.command.polite = 300 * time.Millisecond }, ErrEnding, "9s TERM", nil,
		},
		"a renewal in the grace puts the KILL off": {
			after(9500*time.Millisecond, renews), berth.ErrLost, "9s TERM, 18.5s TERM, 19.5s KILL",
			[]string{"no renewal in time" + tells, "the lease has been renewed after all"},
		},
		"the reason stays when a renewal comes too late for the command": {
			then(after(9500*time.Millisecond, renews), after(2*time.Second, exits)), ErrEnding, "9s TERM", nil,
		},
		"an early end gives it the grace: released": {
			after(3*time.Second, loses(berth.ErrReleased)), berth.ErrReleased, "3s TERM, 4s KILL",
			[]string{"somebody else has released it" + tells},
		},
		"an early end gives it the grace: lost": {
			after(3*time.Second, loses(berth.ErrLost)), berth.ErrLost, "3s TERM, 4s KILL",
			[]string{"the lease is lost" + tells},
		},
		"an early end gives it the grace: expired": {
			after(3*time.Second, loses(berth.ErrExpired)), berth.ErrExpired, "3s TERM, 4s KILL",
			[]string{"it has been held as long as it may" + tells},
		},
		"the end of a hold without end, too": {
			after(time.Hour, loses(berth.ErrReleased)), berth.ErrReleased, "1h0m0s TERM, 1h0m1s KILL", nil,
		},
		"a loss in the grace does not lengthen it": {
			after(9600*time.Millisecond, loses(berth.ErrReleased)), berth.ErrReleased, "9s TERM, 10s KILL", nil,
		},
		"an end before the first look leaves no time": {loses(berth.ErrLost), berth.ErrLost, "0s KILL", nil},
		"signals are passed on": {
			then(interrupts, after(time.Second, interrupts), after(time.Second, exits)), nil,
			"0s pass interrupt, 1s pass interrupt", nil,
		},
		"after a suspension it goes on if the hold lives": {
			then(pauses(5*time.Second), after(time.Second, suspends), after(6*time.Second, exits)), nil,
			"1s suspend, 6s resume", nil,
		},
		"after a suspension past the deadline it is killed at once": {
			then(pauses(time.Minute), after(time.Second, suspends)), berth.ErrLost, "1s suspend, 1m1s KILL, 1m1s resume",
			[]string{"the lease is lost: SIGKILL sent"},
		},
		"what it has started is killed at the deadline": {
			func(w *world) { w.command.polite, w.command.remains = 0, time.Hour }, berth.ErrLost, "9s TERM, 10s KILL", nil,
		},
		"a hold that ended with it is not overlooked, for what it may have left behind": {
			then(after(time.Second, exits), loses(berth.ErrReleased)), berth.ErrReleased, "1s TERM", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			left := 10 * time.Second
			if strings.Contains(name, "without end") {
				left = berth.Forever
			}
			w, err := inWorld(t, left, row.script)
			require.ErrorIs(t, err, row.err)
			require.Equal(t, row.log, strings.Join(w.command.log, ", "))
			require.Equal(t, row.said, append([]string(nil), w.said[:len(row.said)]...))
			if row.log == "" {
				require.Empty(t, w.said)
			}
		})
	}
}

func TestRenewalsMoveTheDeadlineAndCostNoLooking(t *testing.T) {
	w, err := inWorld(t, 10*time.Second, func(w *world) {
		for range 100 {
			time.Sleep(3 * time.Second)
			w.hold.renew(10 * time.Second)
		}
	})
	require.ErrorIs(t, err, berth.ErrLost)
	require.Equal(t, []string{"5m9s TERM", "5m10s KILL"}, w.command.log)
	require.Less(t, w.hold.calls, 60, "310 s with a look about every 9 s")
}

func TestAHoldThatEndsByItsOwnLimitIsNotCalledLost(t *testing.T) {
	for name, polite := range map[string]time.Duration{"polite": 300 * time.Millisecond, "stubborn": never} {
		t.Run(name, func(t *testing.T) {
			var asked []time.Duration
			limited := func(left time.Duration) bool {
				asked = append(asked, left)
				return left <= time.Second
			}
			w, err := inWorld(t, 10*time.Second, func(w *world) { w.command.polite = polite }, limited)
			require.ErrorIs(t, err, berth.ErrExpired)
			require.Equal(t, "9s TERM", w.command.log[0])
			require.Equal(t, "it has been held as long as it may: SIGTERM sent, SIGKILL follows in 1s", w.said[0])
			require.Equal(t, time.Second, asked[0], "not before it matters")
		})
	}
	w, err := inWorld(t, 10*time.Second, func(*world) {}, func(time.Duration) bool { return false })
	require.ErrorIs(t, err, berth.ErrLost)
	require.Equal(t, "no renewal in time: SIGTERM sent, SIGKILL follows in 1s", w.said[0])
}

func TestWhatTheCommandStartedGetsTheRestOfTheGrace(t *testing.T) {
	w, err := inWorld(t, 10*time.Second, func(w *world) {
		w.command.polite, w.command.remains = 0, 600*time.Millisecond
	})
	require.ErrorIs(t, err, ErrEnding)
	require.Equal(t, []string{"9s TERM"}, w.command.log)
	require.GreaterOrEqual(t, w.command.clock.Now(), 9600*time.Millisecond)
}

// The hold goes on, and so does the command, until it ends by itself.
func TestWhoeverIsAskedToGiveBackIsToldOnce(t *testing.T) {
	w, err := inWorld(t, berth.Forever, func(w *world) {
		w.passed = os.Interrupt
		time.Sleep(3 * time.Second)
		close(w.hold.wanted)
		time.Sleep(time.Minute)
		w.command.exit()
	})
	require.NoError(t, err)
	require.Equal(t, []string{"3s pass interrupt"}, w.command.log)
	require.Equal(t, []string{"somebody wants it back: " + Name(os.Interrupt) + " sent"}, w.said)

	w, err = inWorld(t, berth.Forever, func(w *world) {
		close(w.hold.wanted)
		time.Sleep(time.Minute)
		w.command.exit()
	})
	require.NoError(t, err)
	require.Empty(t, w.command.log)
	require.Equal(t, []string{"somebody wants it back"}, w.said)
}
