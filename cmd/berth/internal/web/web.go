// Package web is berth web, which serves the console.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/console"
)

const webHelp = `Serve a page that shows, live, what contends: names, claims, nodes, pools, cycles. However
many browsers look, the server is read once, and only what somebody looks at.

It listens on the loopback unless told otherwise, then with a warning, and is read-only. With --allow-actions a page also
releases, pauses, resizes, rests and drains, each after a confirmation and with a reason; each action is
a line on standard error.

It answers to localhost and to IP addresses. By another name only if --host says so: a site whose name
was made to lead here could otherwise read and act, in the browser of somebody who visits it. On the
loopback every user and every program of this machine may look and, with --allow-actions, act.

It speaks no TLS and knows no passwords: to show it to others put a proxy in front of it that does both,
passes on the Host that it was asked for, which needs --host, and says in a header who asks
(--user-header). The header is believed only from --trusted-proxy; whoever comes from elsewhere, or
without it, sees nothing. /healthz needs no user. Sessions are of one process: in front of several, the
proxy must lead a browser to the same one each time.

Ctrl-C ends it.`

// Command is berth web.
func Command(a *app.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "web [--listen ADDRESS] [--allow-actions]",
		Short: "Serve a page that shows live who holds and who waits",
		Long:  webHelp,
		Example: "  berth web\n  berth web --listen 127.0.0.1:9000 --allow-actions\n" +
			"  berth web --listen 10.0.0.5:8080 --host ops.example.org --user-header X-Forwarded-User --trusted-proxy 10.0.0.2",
		Args: app.Arguments(),
		RunE: a.Runs(func(cmd *cobra.Command, _ []string) error {
			if err := cmp.Or(a.NoJSON(cmd), o.check()); err != nil {
				return err
			}
			return web(cmd.Context(), a, &o)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8080", "`ADDRESS` to listen on, as host:port; port 0 takes a free one")
	flags.BoolVar(&o.actions, "allow-actions", false, "let those who may look act, too")
	flags.StringVar(&o.userHeader, "user-header", "", "`NAME` of the header in which a trusted proxy says who asks")
	flags.StringArrayVar(&o.proxies, "trusted-proxy", nil, "`ADDRESS` or range, as 10.0.0.0/24, of a proxy whose header is believed; repeatable")
	app.HostsVar(flags, &o.names, "a browser")
	return cmd
}

func web(ctx context.Context, a *app.App, o *options) error {
	return app.UntilInterrupted(ctx, func(ctx context.Context) error {
		return a.WithServer(ctx, func(ctx context.Context, c *app.Connection) error {
			listener, err := net.Listen("tcp", o.listen)
			if err != nil {
				return app.Exit(app.ExitFailed, err)
			}
			page, err := console.New(console.Config{
				Redis: c.Redis, Namespace: c.Namespace, CallTimeout: app.Times.Call, Hosts: app.Hosts(o.names), Access: o.access(),
				AllowActions: o.actions, Observer: app.Acts(a.Err),
			})
			if err != nil {
				return errors.Join(err, listener.Close())
			}
			exposed := "sees all names, claims and labels; there is no TLS and no password"
			if o.userHeader != "" {
				exposed = "can read what the proxies ask for: there is no TLS"
			}
			a.WarnExposed(o.listen, exposed)
			mode := "read-only"
			if o.actions {
				mode = "with actions"
			}
			fmt.Fprintf(a.Err, "berth: namespace %s at http://%s/, %s\n", text.Plain(c.Namespace), listener.Addr(), mode)
			return app.ServeConsole(ctx, listener, page)
		})
	})
}
