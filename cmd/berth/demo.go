package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berth-go/berth/cmd/berth/internal/demo"
)

const demoHelp = `Show what Berth does, with real processes, in a quarter of a minute: a semaphore,
a lock, and a pool of resources. No server is needed: the demo has one of its own,
which only this machine can reach, and which ends with it.

On a terminal it is a picture that moves, else a line for everything that
happens. At its end it checks what it has shown.

Exit codes: 0 all is as promised, 1 it is not, or the demo could not be played.`

func (a *app) demoCommand() *cobra.Command {
	var plain bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch processes share a semaphore, a lock and a pool; needs no server",
		Long:  demoHelp,
		Args:  cobra.NoArgs,
		RunE: a.runs(func(cmd *cobra.Command, _ []string) error {
			if err := a.noJSON(cmd); err != nil {
				return err
			}
			return a.play(cmd.Context(), plain)
		}),
	}
	cmd.Flags().BoolVar(&plain, "plain", false, "print lines on a terminal too")
	return cmd
}

// workerName is the hidden command that a process of the demo is.
const workerName = "demo-worker"

func (a *app) demoWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    workerName,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: a.runs(func(cmd *cobra.Command, _ []string) error {
			if err := demo.Work(cmd.Context(), os.Stdin, a.out); err != nil {
				return exitWith(exitFailed, err)
			}
			return nil
		}),
	}
}

func (a *app) play(ctx context.Context, plain bool) error {
	self, err := os.Executable()
	if err != nil {
		return exitWith(exitFailed, err)
	}
	signals := interrupts()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err = untilSignal(signals, cancel, func() error {
		return demo.Run(ctx, a.demoOptions(self, plain))
	})
	switch exit := (*exitError)(nil); {
	case err == nil, errors.As(err, &exit):
		return err
	default:
		return exitWith(exitFailed, err)
	}
}

// demoOptions chooses how the demo is shown: moving where somebody looks at a
// terminal that is large enough.
func (a *app) demoOptions(self string, plain bool) demo.Options {
	o := demo.Options{
		Out: a.out, Width: 80,
		Worker: func() *exec.Cmd { return exec.Command(self, workerName) },
	}
	file := a.out.file()
	if file == nil || !term.IsTerminal(int(file.Fd())) {
		return o
	}
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width == 0 { // a terminal that nobody has measured
		return o
	}
	o.Width = min(width, 120) - 1 // a line that fills a terminal may wrap
	capable := runtime.GOOS != "windows" && !slices.Contains([]string{"", "dumb"}, os.Getenv("TERM"))
	o.Live = capable && !plain && width >= 60 && height > demo.Height
	o.Color = capable && os.Getenv("NO_COLOR") == ""
	return o
}
