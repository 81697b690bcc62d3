package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/supervise"
	"github.com/berth-go/berth/internal/view"
)

// start is one berth run from its first look to its exit code.
func start(a *app.App, o runOptions, args []string) error {
	cmd, err := lookUp(args)
	if err != nil {
		return err
	}
	signals := app.Interrupts()
	app.Relay(signals, supervise.Others())
	notes := newNotes(a.Err)
	defer notes.close()

	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var conn *app.Connection
	var held berth.Handle
	err = app.UntilSignal(signals, cancel, func() (err error) {
		acquire := func(ctx context.Context, conn *app.Connection) (err error) {
			held, err = o.acquire(ctx, conn, label(args[0]), notes)
			return err
		}
		if conn, err = a.ConnectWithin(ctx, o.wait); app.Unavailable(err) {
			return cmp.Or(a.Refused(acquire), err)
		} else if err != nil {
			return err
		}
		return acquire(ctx, conn)
	})
	if err != nil || held == nil {
		if conn != nil {
			o.once.abandon()
			conn.Close()
		}
		return err
	}
	return runHeld(cmd, conn, held, o, signals, notes)
}

// runHeld runs the command under what is held, gives that back, and returns what
// decides on the exit code. The connection ends with it.
func runHeld(cmd *exec.Cmd, conn *app.Connection, held berth.Handle, o runOptions, signals chan os.Signal, notes *notes) error {
	watch := clock.New()
	limited := o.limited(watch, holds(held))
	environment, err := o.environment(holds(held))
	if err != nil {
		_ = o.part(conn, held, signals, notes) // nothing ran under it
		return app.Exit(app.ExitCannotRun, err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(o.inherited(os.Environ()), environment...)
	app.Relay(signals, supervise.Stops())
	process, err := supervise.Start(cmd)
	if err != nil {
		_ = o.part(conn, held, signals, notes) // nothing ran under it
		return app.NotRun(err)
	}
	command := &told{Process: process}
	err = supervise.Wait(supervise.Config{
		Hold: held, Command: command, Grace: o.grace, Limited: limited, Clock: watch, Signals: signals,
		OnWanted: o.wanted,
		Say:      func(line string) { notes.say("%s: %s", listOf(o.names()), line) },
	})
	o.once.stopped, o.once.failure = command.interrupted, nil
	succeeded := process.ExitCode() == 0 && !command.terminated
	if !succeeded && (err != nil || process.ExitCode() != 0) {
		o.once.failure = cmp.Or(err, fmt.Errorf("exit code %d", process.ExitCode()))
	}
	switch lost := o.part(conn, held, signals, notes); {
	case err == nil:
		err = lost
	case o.once.kept && succeeded:
		notes.say("the lease of %q ended before its success was kept; nobody had begun again, so it is done", o.once.name)
		err = nil
	}
	if err != nil {
		return app.Exit(app.ExitLost, o.lostError(held, err))
	}
	if code := process.ExitCode(); code != 0 {
		return app.Exit(code, nil)
	}
	return nil
}

// told is a command, and what it was told before it ended. It belongs to supervise.Wait until that returns.
type told struct {
	*supervise.Process
	interrupted bool // berth was asked to end, and passed that on
	terminated  bool // its hold was over, or about to be
}

func (t *told) Pass(sig os.Signal) {
	t.interrupted = t.interrupted || slices.Contains(supervise.Interrupts(), sig)
	t.Process.Pass(sig)
}

func (t *told) Terminate() {
	select {
	case <-t.Exited(): // only what it left behind is told
	default:
		t.terminated = true
	}
	t.Process.Terminate()
}

// inherited returns the part of berth's own environment that a command gets, without the
// variables of an outer berth's hold.
func (o *runOptions) inherited(environment []string) []string {
	environment = slices.DeleteFunc(environment, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(ofHold, name)
	})
	if o.passEnv {
		return environment
	}
	return app.WithoutPassword(environment)
}

// ofHold are the variables that tell of a hold. Those of one claim are not set where
// there are several.
var ofHold = []string{"BERTH_NAME", "BERTH_CLAIM", "BERTH_FENCE", "BERTH_FENCES", "BERTH_PERIOD", "BERTH_ATTEMPT"}

// environment is what a command finds of what it runs under. A key of a resource
// may be any bytes, and an environment may not.
func (o *runOptions) environment(held []berth.Hold) ([]string, error) {
	fences := make(map[string]string, len(held)) // as text: many a program reads a number as a float
	for _, h := range held {
		fences[h.Name()] = strconv.FormatInt(h.Fence(), 10)
	}
	text, err := json.Marshal(fences)
	if err != nil {
		return nil, err
	}
	environment := append(o.once.environment(), "BERTH_FENCES="+string(text))
	if o.owner != "" {
		environment = append(environment, "BERTH_OWNER="+o.owner)
	}
	if len(held) != 1 {
		return environment, nil
	}
	one := held[0]
	environment = append(environment,
		"BERTH_NAME="+one.Name(), "BERTH_CLAIM="+one.ID(), "BERTH_FENCE="+fences[one.Name()])
	allocation, ok := one.(interface{ Resource() string })
	if !ok {
		return environment, nil
	}
	resource := allocation.Resource()
	if strings.ContainsRune(resource, 0) {
		return nil, fmt.Errorf("resource %s of %q has a NUL byte, which BERTH_RESOURCE cannot have", view.Key(resource), one.Name())
	}
	return append(environment, "BERTH_RESOURCE="+resource), nil
}

// limited says of a hold that begins now whether it ends by a limit of its own,
// and not because no renewal comes. With --max-hold, the two differ by when it
// ends; where that is nearer than the grace, both are true.
func (o *runOptions) limited(watch clock.Clock, held []berth.Hold) func(left time.Duration) bool {
	switch {
	case o.noRenew, o.maxHold != 0 && o.maxHold <= o.lease:
		return func(time.Duration) bool { return true }
	case o.maxHold == 0:
		return nil
	}
	from := watch.Now() + o.maxHold - o.grace - longest(held)
	return func(left time.Duration) bool { return watch.Now()+left >= from }
}

// longest is for how long the first of several locks has been held.
func longest(held []berth.Hold) (longest time.Duration) {
	for _, h := range held {
		longest = max(longest, time.Since(h.Granted()))
	}
	return longest
}

// limit is the flag that bounds the hold, and its value.
func (o *runOptions) limit() string {
	if o.noRenew && (o.maxHold == 0 || o.lease <= o.maxHold) {
		return "--lease " + o.lease.String() + " with --no-renew"
	}
	return "--max-hold " + o.maxHold.String()
}

// lostError is the last line about a hold that ended too early. Of several locks it
// names the one that ended.
func (o *runOptions) lostError(held berth.Handle, err error) error {
	var texts []string
	for _, h := range holds(held) {
		text := fmt.Sprintf("%q, fence %d,", h.Name(), h.Fence())
		if end := (*berth.EndError)(nil); errors.As(err, &end) && end.Claim == h.ID() {
			texts = []string{text}
			break
		}
		texts = append(texts, text)
	}
	text := strings.Join(texts, " ")
	switch {
	case errors.Is(err, supervise.ErrEnding):
		return fmt.Errorf("the command was told to end before the lease of %s did", text)
	case errors.Is(err, berth.ErrReleased) && errors.Is(err, berth.ErrDraining):
		why, end := err, (*berth.EndError)(nil)
		if errors.As(err, &end) {
			why = end.Cause
		}
		return fmt.Errorf("the %s %s was %s while the command ran", nouns[o.what()], text, strings.TrimPrefix(why.Error(), "berth: "))
	case errors.Is(err, berth.ErrReleased):
		return fmt.Errorf("the %s %s was released by somebody else while the command ran", nouns[o.what()], text)
	case errors.Is(err, berth.ErrExpired):
		return fmt.Errorf("the %s %s was held as long as %s allows, and the command still ran", nouns[o.what()], text, o.limit())
	default:
		return fmt.Errorf("the lease of %s was lost while the command ran", text)
	}
}

// nouns are what the holds are called, before a name.
var nouns = map[string]string{"--sem": "permit of", "--lock": "lock", "--pool": "resource of", "--once": "lock"}

const (
	// parting limits the total time that berth spends on a hold whose command has ended, since a
	// caller who waits for the command also waits for this. Nor does it go on for longer than the
	// lease, with which the hold ends by itself.
	parting = 10 * time.Second
	// closingHold bounds what is left to do when the hold is given back or lost.
	closingHold = 2 * time.Second
	// unheeded is how long a signal does not end that: one that was meant for the
	// command may have been sent to berth as well, as by a service manager.
	unheeded = 500 * time.Millisecond
)

// part gives back what is held, and ends the connection. A signal ends that. Its
// error is that of release.
func (o *runOptions) part(conn *app.Connection, held berth.Handle, signals <-chan os.Signal, notes *notes) (lost error) {
	bound := min(o.lease, parting)
	ctx, stop := context.WithTimeoutCause(context.Background(), bound, fmt.Errorf("no answer within %s", bound))
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := time.Now()
	later := func(cause error) { time.AfterFunc(unheeded-time.Since(ended), func() { cancel(cause) }) }
	_ = app.UntilSignal(signals, later, func() error { // the exit code stays that of the command
		for _, h := range slices.Backward(holds(held)) {
			if err := o.release(ctx, h, notes); err != nil && lost == nil {
				lost = err
			}
		}
		ctx, stop := context.WithTimeout(ctx, closingHold)
		defer stop()
		conn.CloseWithin(ctx)
		return nil
	})
	return lost
}

// release gives back what is held, for as long as it is worth the while. It
// returns an error only for what was not held any more; what could not be given
// back ends with its lease, and the command's own result counts.
func (o *runOptions) release(ctx context.Context, held berth.Hold, notes *notes) error {
	left, giveBack := held.Left(), held.Release
	if o.once.run != nil {
		giveBack = o.once.end
	} else if left == 0 {
		return held.Err()
	}
	patience := max(left, closingHold)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %s", patience.Round(time.Millisecond)))
	defer cancel()
	err := app.UnlessOver(ctx, func() error { return giveBack(ctx) })
	switch {
	case err == nil:
		o.once.kept = true
		return nil
	case errors.Is(err, berth.ErrNotHeld), errors.Is(err, berth.ErrReleased):
		return err
	case o.once.run != nil && o.once.failure == nil:
		notes.say("the command of %q succeeded, and the server could not be told (%v): the command may run again in this period", held.Name(), err)
		return nil
	default:
		notes.say("%q not given back, it ends with its lease: %v", held.Name(), err)
		return nil
	}
}
