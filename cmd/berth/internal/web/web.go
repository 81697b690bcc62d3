// Package web is berth web, which serves the console.
package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/pkg/console"
)

const webHelp = `Serve a page that shows, live, what contends: names, claims, nodes, pools, circles. However
many browsers look, the server is read once, and only what somebody looks at.

It listens on the loopback unless told otherwise, and is read-only. It speaks no TLS and knows no
passwords: to show it to others put a proxy in front of it that does both.

Ctrl-C ends it.`

// Command is berth web.
func Command(a *app.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "web [--listen ADDRESS]",
		Short:   "Serve a page that shows live who holds and who waits",
		Long:    webHelp,
		Example: "  berth web\n  berth web --listen 127.0.0.1:9000",
		Args:    cobra.NoArgs,
		RunE: a.Runs(func(cmd *cobra.Command, _ []string) error {
			if err := a.NoJSON(cmd); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			return web(cmd.Context(), a, &o)
		}),
	}
	cmd.Flags().StringVar(&o.listen, "listen", "127.0.0.1:8080", "`ADDRESS` to listen on, as host:port; port 0 takes a free one")
	return cmd
}

// options are the flags.
type options struct {
	listen string
}

func (o *options) check() error {
	if _, _, err := net.SplitHostPort(o.listen); err != nil {
		return app.Usage("--listen: %w", err)
	}
	return nil
}

func web(ctx context.Context, a *app.App, o *options) error {
	signals := app.Interrupts()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	return app.UntilSignal(signals, cancel, func() error {
		return a.WithServer(ctx, func(ctx context.Context, c *app.Connection) error {
			listener, err := net.Listen("tcp", o.listen)
			if err != nil {
				return app.Exit(app.ExitFailed, err)
			}
			page, err := console.New(console.Config{Redis: c.Redis, Namespace: c.Namespace, CallTimeout: app.Times.Call, Hosts: o.hosts()})
			if err != nil {
				return errors.Join(err, listener.Close())
			}
			fmt.Fprintf(a.Err, "berth: namespace %s at http://%s/, read-only\n", c.Namespace, listener.Addr())
			return Serve(ctx, listener, page)
		})
	})
}

// hosts are the names by which the page may be asked for. On the loopback there are no others: a name of another site
// that leads here is refused.
func (o *options) hosts() []string {
	host, _, _ := net.SplitHostPort(o.listen)
	if !loopback(host) {
		return nil
	}
	return []string{"localhost", "127.0.0.1", "::1", host}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// ending bounds how long requests are waited for at the end.
const ending = 3 * time.Second

// Serve serves a page until ctx ends, and closes it.
func Serve(ctx context.Context, listener net.Listener, page *console.Console) error {
	server := &http.Server{
		Handler: page, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	var err error
	select {
	case err = <-served:
		err = app.Exit(app.ExitFailed, err)
	case <-ctx.Done():
	}
	within, cancel := context.WithTimeout(context.Background(), ending)
	defer cancel()
	_ = page.Close(within) // the streams end, and with them what the server waits for
	if server.Shutdown(within) != nil {
		_ = server.Close()
	}
	if err == nil {
		_ = <-served // http.ErrServerClosed
	}
	return err
}
