// Package exporter is berth exporter, which tells Prometheus what no process knows of itself.
package exporter

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/origin"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/observe/measure"
)

const exporterHelp = `Serve metrics to Prometheus at /metrics: what is held and waited for, for how long, what is
stuck, paused and drained, which pools run dry, which runs are overdue, what has died, how the
server is. It only reads. docs/metrics.md tells of each metric, and has rules and a dashboard.

The server is read when somebody asks, at most once in --every, and once however many ask.
A reading is bounded: with more names in use than it has room for, a walk over them goes
on in the next one, and beside it the names that are waited for are read each time.
Cycles are searched for beside that, at most once in 30s, and for 1/150 of the time.
berth_exporter_age_seconds, _walk_age_seconds and _cycles_age_seconds say how old figures are.
While the server does not answer, /metrics does: berth_up is 0, and no old figures are told.

A name becomes a label by its class (--name-class):

  collapse  numbers and ids in it become *: invoice:* for invoice:42; the rest stays (default)
  name      itself: for few names that never change
  none      all names of a kind are one class

The first --max-classes stay; all further names are of the class "other".

It speaks no TLS and knows no passwords; who can reach it sees the classes of the names.
It answers to localhost and to IP addresses, by another name only if --host says so: a site
whose name was made to lead here could otherwise read, in the browser of somebody who visits it.
/healthz says that it runs. Ctrl-C ends it.`

// options are the flags.
type options struct {
	listen        string
	every, within time.Duration
	class         string
	most          int
	names         []string // by which it may be asked for
}

// waysOf are how a name becomes a class.
var waysOf = map[string]func(name string) string{
	"collapse": measure.Collapse,
	"name":     func(name string) string { return name },
	"none":     func(string) string { return "" },
}

func (o *options) check() error {
	if _, _, err := net.SplitHostPort(o.listen); err != nil {
		return app.Usage("--listen: %w", err)
	}
	switch {
	case o.every <= 0:
		return app.Usage("--every: %s is not above 0", o.every)
	case o.within < 100*time.Millisecond || o.within > time.Minute:
		return app.Usage("--timeout: %s is not from 100ms to 1m", o.within)
	case waysOf[o.class] == nil:
		return app.Usage("--name-class: %q is none of collapse, name and none", o.class)
	case o.most < 1 || o.most > 1000:
		return app.Usage("--max-classes: %d is not from 1 to 1000", o.most)
	}
	return app.CheckHosts(o.names)
}

// Command is berth exporter.
func Command(a *app.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "exporter [--listen ADDRESS]",
		Short: "Serve metrics to Prometheus",
		Long:  exporterHelp,
		Example: "  berth exporter\n  berth exporter --listen 10.0.0.5:9464 --every 30s\n" +
			"  berth exporter --name-class none",
		Args: app.Arguments(),
		RunE: a.Runs(func(cmd *cobra.Command, _ []string) error {
			if err := cmp.Or(a.NoJSON(cmd), o.check()); err != nil {
				return err
			}
			return export(cmd.Context(), a, &o)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", "127.0.0.1:9464", "`ADDRESS` to listen on, as host:port; port 0 takes a free one")
	app.TimeVar(flags, &o.every, "every", 10*time.Second, "read the server at most once in so long")
	app.TimeVar(flags, &o.within, "timeout", 5*time.Second, "how long a reading may take, 1m at the most; keep it below the scrape's")
	flags.StringVar(&o.class, "name-class", "collapse", "`HOW` a name becomes a label: collapse, name or none")
	flags.IntVar(&o.most, "max-classes", 200, "how many classes of names there may be, 1000 at the most")
	app.HostsVar(flags, &o.names, "one")
	_ = cmd.RegisterFlagCompletionFunc("name-class", cobra.FixedCompletions([]string{"collapse", "name", "none"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func export(ctx context.Context, a *app.App, o *options) error {
	return app.UntilInterrupted(ctx, func(ctx context.Context) error {
		l := &late{app: a, within: o.within, classes: newClasses(waysOf[o.class], o.most)}
		defer l.close()
		first, cancel := context.WithTimeout(ctx, o.within)
		defer cancel()
		if err := l.connect(first); err != nil && !app.Unavailable(err) { // as a wrong flag has it
			return err
		}
		listener, err := net.Listen("tcp", o.listen)
		if err != nil {
			return app.Exit(app.ExitFailed, err)
		}
		a.WarnExposed(o.listen, "sees the classes of the names; there is no TLS and no password")
		fmt.Fprintf(a.Err, "berth: metrics of namespace %s at http://%s/metrics\n", text.Plain(a.Namespace), listener.Addr())
		e := newExporter(o.every, o.within, l.read, func(problem string) { fmt.Fprintln(a.Err, app.OneLine(problem)) })
		defer e.close()
		return app.Serve(ctx, listener, origin.Guard(e.handler(), app.Hosts(o.names)), func(context.Context) error { return nil })
	})
}

// askedMost is how many may ask at the same time.
const askedMost = 20

func (e *exporter) handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(e)
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: askedMost})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		// A reading may take longer than the server has for others.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(e.within + 30*time.Second))
		metrics.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "ok\n")
	})
	return mux
}
