package supervise

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
// The script runs beside it.
func inWorld(t *testing.T, left time.Duration, script func(w *world)) (w *world, err error) {
	t.Helper()
	return inLimitedWorld(t, left, nil, script)
}

// inLimitedWorld does so with a hold that may end by a limit of its own.
func inLimitedWorld(t *testing.T, left time.Duration, limited func(time.Duration) bool, script func(w *world)) (w *world, err error) {
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
			Hold: w.hold, Command: w.command, Grace: time.Second, Limited: limited, Clock: c, Signals: w.signals, OnWanted: w.passed,
			Say: func(line string) { w.said = append(w.said, line) },
		})
		synctest.Wait() // for the script to end
	})
	return w, err
}
