package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/pkg/console"
	"github.com/berth-go/berth/pkg/embedded"
)

const demoHelp = `Show what Berth does, with real processes, in a quarter of a minute: a semaphore,
a lock, and a pool of resources. No server is needed: the demo has one of its own,
which only this machine can reach, and which ends with it.

On a terminal it is a picture that moves, else a line for everything that
happens. At its end it checks what it has shown.

With --web it plays all acts beside each other, again and again, and shows the page of
'berth web' on its own server, actions allowed, until Ctrl-C.

Exit codes: 0 all is as promised, 1 it is not, or the demo could not be played.`

// Command is berth demo.
func Command(a *app.App) *cobra.Command {
	var plain, page bool
	var listen string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch processes share a semaphore, a lock and a pool; needs no server",
		Long:  demoHelp,
		Args:  app.Arguments(),
		RunE: a.Runs(func(cmd *cobra.Command, _ []string) error {
			if err := a.NoJSON(cmd); err != nil {
				return err
			}
			if !page && cmd.Flags().Changed("listen") {
				return app.Usage("--listen is for --web")
			}
			if page {
				return showPage(cmd.Context(), a, listen)
			}
			return play(cmd.Context(), a, plain)
		}),
	}
	cmd.Flags().BoolVar(&plain, "plain", false, "print lines on a terminal too")
	cmd.Flags().BoolVar(&page, "web", false, "go on until Ctrl-C, and show a page")
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "`ADDRESS` on this machine of that page, as host:port; port 0 takes a free one")
	return cmd
}

// workerName is the hidden command that a process of the demo is.
const workerName = "demo-worker"

// WorkerCommand is what the processes of the demo run.
func WorkerCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:    workerName,
		Hidden: true,
		Args:   app.Arguments(),
		RunE: a.Runs(func(cmd *cobra.Command, _ []string) error {
			if err := Work(cmd.Context(), os.Stdin, a.Out); err != nil {
				return app.Exit(app.ExitFailed, err)
			}
			return nil
		}),
	}
}

// showPage plays the acts for a page that shows them.
func showPage(ctx context.Context, a *app.App, listen string) error {
	if !app.Loopback(listen) {
		return app.Usage("--listen: the page of the demo is for this machine alone: 127.0.0.1:port")
	}
	self, err := os.Executable()
	if err != nil {
		return app.Exit(app.ExitFailed, err)
	}
	return app.UntilInterrupted(ctx, func(ctx context.Context) error {
		if err := watched(ctx, a, listen, demoOptions(a, self, true)); err != nil {
			return app.Exit(app.ExitFailed, err)
		}
		return nil
	})
}

func watched(ctx context.Context, a *app.App, listen string, opts Options) error {
	server, err := embedded.StartListening("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer server.Close()
	redis, err := server.Client()
	if err != nil {
		return err
	}
	defer redis.Close()
	page, err := console.New(console.Config{
		Redis: redis, Namespace: namespace, AllowActions: true, Hosts: app.Hosts(nil), Observer: app.Acts(a.Err),
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "The page is at http://%s/; the acts go on until Ctrl-C. Its server: %s\n\n", listener.Addr(), server.URL())
	ctx, cancel := context.WithCancel(ctx)
	var playing sync.WaitGroup
	playing.Go(func() { Watched(ctx, opts, server) })
	err = app.ServeConsole(ctx, listener, page)
	cancel()
	playing.Wait()
	return err
}

func play(ctx context.Context, a *app.App, plain bool) error {
	self, err := os.Executable()
	if err != nil {
		return app.Exit(app.ExitFailed, err)
	}
	err = app.UntilInterrupted(ctx, func(ctx context.Context) error {
		return Run(ctx, demoOptions(a, self, plain))
	})
	switch exit := (*app.ExitError)(nil); {
	case err == nil, errors.As(err, &exit):
		return err
	default:
		return app.Exit(app.ExitFailed, err)
	}
}

// demoOptions chooses how the demo is shown: moving where somebody looks at a
// terminal that is large enough.
func demoOptions(a *app.App, self string, plain bool) Options {
	o := Options{
		Out: a.Out, Width: 80,
		Worker: func() *exec.Cmd { return exec.Command(self, workerName) },
	}
	file := a.Out.File()
	if file == nil || !term.IsTerminal(int(file.Fd())) {
		return o
	}
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width == 0 { // a terminal that nobody has measured
		return o
	}
	o.Width = min(width, 120) - 1 // a line that fills a terminal may wrap
	o.Live = app.Capable() && !plain && width >= 60 && height > Height
	o.Color = a.Colors()
	return o
}
