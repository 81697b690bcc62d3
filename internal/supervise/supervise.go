package supervise

import (
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
)

// ErrEnding says that the command was told to end because the hold was about to,
// and did so while the hold still lived.
var ErrEnding = errors.New("supervise: the hold was about to end")

// Hold is what the command runs under; every handle of Berth is one.
type Hold interface {
	// Done is closed when the hold has ended.
	Done() <-chan struct{}
	// Err says why it ended, nil while it lives.
	Err() error
	// Left is how long the holder may believe in it if nothing renews it:
	// berth.Forever for no end, 0 once it has ended.
	Left() time.Duration
	// Wanted is closed when somebody has asked for it back.
	Wanted() <-chan struct{}
}

// Command is a process that has been started, with all that it started itself.
// Process is one; none of its methods but Suspend blocks.
type Command interface {
	// Exited is closed when the process has ended.
	Exited() <-chan struct{}
	// Gone reports whether all that it started has ended too.
	Gone() bool
	// Terminate asks all of it to end.
	Terminate()
	// Kill ends all of it.
	Kill()
	// Pass sends it a signal that was meant for it.
	Pass(os.Signal)
	// Stopped receives when the process was stopped at its terminal.
	Stopped() <-chan struct{}
	// Suspend stops all of it and then this very process. It returns when this
	// process is continued.
	Suspend()
	// Resume continues it after Suspend.
	Resume()
}

// Config says what is watched. All fields but Limited and OnWanted are required.
type Config struct {
	Hold    Hold
	Command Command
	// Grace is the time from SIGTERM to SIGKILL.
	Grace time.Duration
	// Limited reports of a hold that has so much left whether it ends by a limit
	// of its own, which no renewal moves. Default never.
	Limited func(left time.Duration) bool
	// OnWanted is sent to the command when somebody asks for the hold back, once: it is
	// for the command to end by itself. Default nil: a line alone says so.
	OnWanted os.Signal
	// Clock is what deadlines are compared with.
	Clock clock.Clock
	// Signals are passed on to the command.
	Signals <-chan os.Signal
	// Say takes a line for the user. It must not block: a kill may be due.
	Say func(line string)
}

// Wait watches until the command has ended. It is nil when the command ended by
// itself under a hold that lived; else it says why the command was told to end:
// what the hold's Err says, berth.ErrExpired for one that was about to end by its
// own limit, or ErrEnding. What the command had started is
// then over as well.
func Wait(cfg Config) error {
	w := &watch{Config: cfg}
	return w.run()
}

// never is later than every moment on a clock.
const never time.Duration = math.MaxInt64

// lookAgain is how often what a command has left behind is looked at.
const lookAgain = 10 * time.Millisecond

// watch is one Wait. It belongs to one goroutine.
type watch struct {
	Config
	deadline time.Duration // of the hold when it was last seen alive, 0 before
	ended    bool          // the hold has
	killAt   time.Duration // when it has ended
	told     bool          // SIGTERM was sent for what is now the matter
	killed   bool
	cause    error // why the first SIGTERM or SIGKILL was sent
}

func (w *watch) run() error {
	timer := time.NewTimer(never)
	defer timer.Stop()
	done, wanted := w.Hold.Done(), w.Hold.Wanted()
	suspended := false
	for {
		// First of all after every wake-up: this process itself may have been
		// stopped, or the machine suspended.
		w.arm(timer, w.look())
		if suspended {
			w.Command.Resume()
			suspended = false
		}
		select {
		case <-w.Command.Exited():
			return w.finish(timer)
		case <-timer.C:
		case <-done:
			done = nil
		case <-wanted:
			wanted = nil
			w.asked()
		case sig := <-w.Signals:
			if suspended = suspends(sig); !suspended {
				w.Command.Pass(sig)
			}
		case <-w.Command.Stopped():
			suspended = true
		}
		if suspended {
			w.Command.Suspend()
		}
	}
}

// asked tells of somebody who wants the hold back.
func (w *watch) asked() {
	if w.OnWanted == nil {
		w.Say("somebody wants it back")
		return
	}
	w.Command.Pass(w.OnWanted)
	w.Say("somebody wants it back: " + Name(w.OnWanted) + " sent")
}

// look does what is due, and returns the earliest moment at which something may
// be due again. A renewal only moves that moment on, so nothing needs to tell
// of it.
func (w *watch) look() time.Duration {
	now := w.Clock.Now()
	left := w.Hold.Left()
	switch {
	case left == berth.Forever:
		w.deadline = never
		return never
	case left > 0:
		return w.lives(now, left)
	default:
		return w.over(now)
	}
}

// lives looks at a hold that ends after left unless it is renewed.
func (w *watch) lives(now, left time.Duration) time.Duration {
	w.deadline = now + left
	if left > w.Grace {
		if w.told {
			w.told = false
			w.Say("the lease has been renewed after all")
		}
		return w.deadline - w.Grace
	}
	if w.Limited != nil && w.Limited(left) {
		w.terminate(berth.ErrExpired, reason(berth.ErrExpired), left)
	} else {
		w.terminate(ErrEnding, "no renewal in time", left)
	}
	return w.deadline
}

// over looks at a hold that has ended. If that was at its deadline, so late
// that the command has had its grace, or this process did not run until then,
// the command has no time left.
func (w *watch) over(now time.Duration) time.Duration {
	err := w.Hold.Err()
	if !w.ended {
		w.ended, w.killAt = true, min(w.deadline, now+w.Grace)
	}
	if now >= w.killAt {
		w.kill(err)
		return never
	}
	w.terminate(err, reason(err), w.killAt-now)
	return w.killAt
}

// reason is why a hold has ended before its deadline.
func reason(err error) string {
	switch {
	case errors.Is(err, berth.ErrReleased):
		return "somebody else has released it"
	case errors.Is(err, berth.ErrExpired):
		return "it has been held as long as it may"
	default:
		return "the lease is lost"
	}
}

func (w *watch) terminate(cause error, why string, left time.Duration) {
	w.blame(cause)
	if w.told {
		return
	}
	w.told = true
	w.Command.Terminate()
	w.Say(fmt.Sprintf("%s: SIGTERM sent, SIGKILL follows in %s", why, left.Round(time.Millisecond)))
}

func (w *watch) kill(cause error) {
	w.blame(cause)
	if w.killed {
		return
	}
	w.told, w.killed = true, true
	w.Command.Kill()
	w.Say(reason(cause) + ": SIGKILL sent")
}

// blame keeps why the command was told to end. What the hold says is final, and
// says more than ErrEnding.
func (w *watch) blame(cause error) {
	if w.cause == nil || errors.Is(w.cause, ErrEnding) {
		w.cause = cause
	}
}

// finish gives what the command has started the time that the command itself
// would have had, if it was told to end. Nothing tells when a process group is
// empty, so it is looked at.
func (w *watch) finish(timer *time.Timer) error {
	for {
		next := w.look()
		if !w.told || w.killed || w.Command.Gone() {
			return w.cause
		}
		w.arm(timer, min(next, w.Clock.Now()+lookAgain))
		<-timer.C
	}
}

// arm sets the timer to a moment on the clock.
func (w *watch) arm(timer *time.Timer, at time.Duration) { timer.Reset(at - w.Clock.Now()) }
