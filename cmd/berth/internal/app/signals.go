package app

import (
	"context"
	"os"
	"os/signal"
	"slices"

	"github.com/berth-go/berth/internal/supervise"
)

// Interrupts returns a channel with the signals that ask to end. They come to it until the
// process has ended: a late one must not take the place of the exit code.
func Interrupts() chan os.Signal {
	signals := make(chan os.Signal, 16)
	Relay(signals, supervise.Interrupts())
	return signals
}

// Relay is signal.Notify, to which an empty list means all signals.
func Relay(to chan<- os.Signal, list []os.Signal) {
	if len(list) > 0 {
		signal.Notify(to, list...)
	}
}

// interrupted says which signal ended the wait.
type interrupted struct{ sig os.Signal }

func (i *interrupted) Error() string { return "ended by signal: " + i.sig.String() }

// UntilInterrupted runs f, whose context ends with a signal that asks to end. The error is that of UntilSignal.
func UntilInterrupted(ctx context.Context, f func(context.Context) error) error {
	signals := Interrupts()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	return UntilSignal(signals, cancel, func() error { return f(ctx) })
}

// UntilSignal runs f, and cancels it when a signal comes that asks to end. There
// is no command yet to which others could be passed on. The error is then that
// of the signal, whatever f returns, success included.
func UntilSignal(signals <-chan os.Signal, cancel context.CancelCauseFunc, f func() error) error {
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
				return Exit(exitSignal+supervise.Number(ended.sig), ended)
			}
			return err
		}
	}
}
