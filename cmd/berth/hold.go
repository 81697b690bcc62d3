package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/supervise"
	"github.com/berth-go/berth/pkg/semaphore"
)

// waitLease bounds how long a berth that died in line is waited for, however
// long the lease of its permit is to be.
const waitLease = 10 * time.Second

func itoa(n int) string { return strconv.Itoa(n) }

// run is one berth run from its first look to its exit code.
func (a *app) run(o runOptions, args []string) error {
	cmd, err := lookUp(args)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 16)
	relay(signals, supervise.Interrupts())
	relay(signals, supervise.Others())
	defer signal.Stop(signals)
	notes := newNotes(a.err)
	defer notes.close()

	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var conn *connection
	var permit *semaphore.Permit
	err = untilSignal(signals, cancel, func() (err error) {
		if conn, err = a.connect(ctx, o.config(args[0], notes)); err == nil {
			permit, err = acquire(ctx, conn, o)
		}
		return err
	})
	if conn != nil {
		defer conn.close()
	}
	if err != nil {
		return err
	}
	return a.hold(cmd, permit, o, signals, notes)
}

// relay is signal.Notify, to which an empty list means all signals.
func relay(to chan<- os.Signal, list []os.Signal) {
	if len(list) > 0 {
		signal.Notify(to, list...)
	}
}

// config is that of a client that asks for one permit.
func (o *runOptions) config(command string, notes *notes) semaphore.Config {
	return semaphore.Config{
		Label: label(command), Lease: min(o.lease, waitLease),
		WarnHeldLongerThan: -1, // a command may take its time
		Observer:           notes.observer(),
	}
}

// interrupted says which signal ended the wait.
type interrupted struct{ sig os.Signal }

func (i *interrupted) Error() string { return "ended by signal: " + i.sig.String() }

// untilSignal runs f, and cancels it when a signal comes that asks to end. There
// is no command yet to which others could be passed on. The error is then that
// of the signal, whatever f returns, success included.
func untilSignal(signals <-chan os.Signal, cancel context.CancelCauseFunc, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	var ended *interrupted
	for {
		select {
		case sig := <-signals:
			if ended == nil && slices.Contains(supervise.Interrupts(), sig) {
				ended = &interrupted{sig}
				cancel(ended)
			}
		case err := <-done:
			if ended != nil {
				return &exitError{exitSignal + supervise.Number(ended.sig), ended}
			}
			return err
		}
	}
}

// acquire waits for the permit. When it returns one, at least half of its lease
// is left.
func acquire(ctx context.Context, conn *connection, o runOptions) (*semaphore.Permit, error) {
	sem, err := conn.sems.Semaphore(o.name, o.capacity)
	if err != nil {
		return nil, inFlags(err, "capacity", "--capacity", "name", "--sem")
	}
	take := sem.Acquire
	if o.try {
		take = sem.TryAcquire
	}
	permit, err := take(ctx, &semaphore.AcquireOptions{
		Weight: o.weight, Priority: o.priority, Lease: o.lease, MaxHold: o.maxHold, MaxWait: o.wait,
	})
	if err != nil {
		return nil, notAcquired(conn, err)
	}
	// A first grant is no longer than the wait lease, whatever the lease.
	span := o.lease
	if o.maxHold != 0 {
		span = min(span, o.maxHold)
	}
	if permit.Left() < span/2 {
		if err := permit.Renew(ctx); err != nil {
			return nil, unreachable(conn.address, err)
		}
	}
	return permit, nil
}

// notAcquired gives the error of an acquire its exit code.
func notAcquired(conn *connection, err error) error {
	var refused *berth.AcquireError
	switch {
	case errors.As(err, &refused) && refused.Reason == berth.ReasonFailed:
		return unreachable(conn.address, refused.Cause)
	case errors.As(err, &refused):
		return &exitError{exitNotAcquired, err}
	default:
		return err
	}
}

// hold runs the command under the permit, gives the permit back, and returns
// what decides on the exit code.
func (a *app) hold(cmd *exec.Cmd, permit *semaphore.Permit, o runOptions, signals chan os.Signal, notes *notes) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(),
		"BERTH_NAME="+permit.Name(), "BERTH_CLAIM="+permit.ID(),
		"BERTH_FENCE="+strconv.FormatInt(permit.Fence(), 10))
	relay(signals, supervise.Stops())
	process, err := supervise.Start(cmd)
	if err != nil {
		_ = release(permit, notes) // nothing ran under it
		return &exitError{exitCannotRun, err}
	}
	err = supervise.Wait(supervise.Config{
		Hold: permit, Command: process, Grace: o.grace, Clock: clock.New(), Signals: signals,
		Say: func(line string) { notes.say("%q: %s", permit.Name(), line) },
	})
	if lost := release(permit, notes); err == nil {
		err = lost
	}
	if err != nil {
		return &exitError{exitLost, lostError(permit, err)}
	}
	if code := process.ExitCode(); code != 0 {
		return &exitError{code: code}
	}
	return nil
}

// lostError is the last line about a permit that ended too early.
func lostError(permit *semaphore.Permit, err error) error {
	held := fmt.Sprintf("%q, fence %d", permit.Name(), permit.Fence())
	switch {
	case errors.Is(err, supervise.ErrEnding):
		return fmt.Errorf("the command was told to end before the lease of %s did", held)
	case errors.Is(err, berth.ErrReleased):
		return fmt.Errorf("the permit of %s was released by somebody else while the command ran", held)
	case errors.Is(err, berth.ErrExpired):
		return fmt.Errorf("the permit of %s was held as long as it may while the command ran", held)
	default:
		return fmt.Errorf("the lease of %s was lost while the command ran", held)
	}
}

// release gives the permit back, for as long as it is worth the while. It
// returns an error only for a permit that was not held any more; one that could
// not be given back ends with its lease, and the command's own result counts.
func release(permit *semaphore.Permit, notes *notes) error {
	left := permit.Left()
	if left == 0 {
		return permit.Err()
	}
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	err := permit.Release(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, berth.ErrNotHeld), errors.Is(err, berth.ErrReleased):
		return err
	default:
		notes.say("%q not given back, it ends with its lease: %v", permit.Name(), err)
		return nil
	}
}
