package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"regexp"
	"strings"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/text"
)

// The exit codes, as in sysexits.h and, from 126 on, as of shells.
const (
	ExitFailed      = 1   // something is not as it should be: check, demo, show
	exitUsage       = 64  // EX_USAGE: flags or arguments are wrong
	ExitDamaged     = 65  // EX_DATAERR: what is stored is not whole
	ExitNoInput     = 66  // EX_NOINPUT: the input cannot be read
	ExitAbsent      = 67  // EX_NOUSER: the resource that run is to wait for is not in the pool
	exitUnavailable = 69  // EX_UNAVAILABLE: the server cannot be reached, or refuses
	exitOutput      = 74  // EX_IOERR: what there is to say cannot be written
	ExitNotAcquired = 75  // EX_TEMPFAIL: not acquired, try again later
	ExitLost        = 76  // EX_PROTOCOL: the lease was lost while the command ran
	ExitNotRun      = 77  // EX_NOPERM: run --once --strict, and somebody has done it or is at it
	ExitCannotRun   = 126 // the command is no program that can be run
	exitNoCommand   = 127 // there is no such command
	exitSignal      = 128 // + n: signal n ended the wait, or the command
)

// ExitError ends the program with a code. Without an err nothing is printed.
type ExitError struct {
	code int
	err  error
}

func (e *ExitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *ExitError) Unwrap() error { return e.err }

// Exit gives an error, nil for one that is said already, an exit code.
func Exit(code int, err error) error { return &ExitError{code, err} }

// Usage is the error for wrong flags or arguments.
func Usage(format string, args ...any) error {
	return Exit(exitUsage, fmt.Errorf(format, args...))
}

// decided reports whether an error has an exit code of its own, and is not the
// server's.
func decided(err error) bool {
	var exit *ExitError
	var output *outputError
	return errors.As(err, &exit) || errors.As(err, &output) || errors.Is(err, berth.ErrInvalidConfig) ||
		errors.Is(err, berth.ErrOvertaken)
}

// CodeOf is the exit code for an error.
func CodeOf(err error) int {
	var exit *ExitError
	var output *outputError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &output):
		return exitOutput
	case errors.Is(err, berth.ErrInvalidConfig):
		return exitUsage
	case errors.Is(err, state.ErrDamaged):
		return ExitDamaged
	case errors.Is(err, berth.ErrOvertaken):
		return ExitFailed
	default:
		return exitUnavailable
	}
}

// Unavailable reports whether an error is that of a server that cannot be reached, or refuses: later it may do neither.
func Unavailable(err error) bool { return CodeOf(err) == exitUnavailable }

// InFlags lets an error of the library name the flag instead of the field, by
// pairs of field and flag. Other errors stay as they are.
func InFlags(err error, pairs ...string) error {
	var invalid *berth.ConfigError
	if !errors.As(err, &invalid) {
		return err
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if invalid.Field == pairs[i] {
			return berth.Invalid(pairs[i+1], "%s", invalid.Problem)
		}
	}
	return err
}

// secrets finds what stands before the @ of a URL.
var secrets = regexp.MustCompile(`://\S*@`)

// redact takes user names and passwords of URLs out of a text, wherever it
// comes from.
func redact(text string) string { return secrets.ReplaceAllString(text, "://***@") }

// OneLine is how an error is printed: in one line, without a password, without
// what commands a terminal, and with the program's name once.
func OneLine(message string) string {
	message = text.Escaped(redact(strings.Join(strings.Fields(message), " ")))
	return "berth: " + strings.TrimPrefix(message, "berth: ")
}

// said is an error as it is printed, "" for none and for one that is said already.
func said(err error) string {
	if exit := (*ExitError)(nil); err == nil || errors.As(err, &exit) && exit.err == nil {
		return ""
	}
	return OneLine(err.Error())
}

func (a *App) tell(err error) {
	if says := said(err); says != "" {
		fmt.Fprintln(a.Err, says)
	}
}

// NotRun gives the error of a command that cannot be started its exit code.
func NotRun(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrDot) {
		return Exit(exitNoCommand, err)
	}
	return Exit(ExitCannotRun, err)
}
