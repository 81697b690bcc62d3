package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

func (a *App) checkCommand() *cobra.Command {
	var eviction, writable bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "See whether the server will do",
		Long: `See whether the server will do for Berth, and how fast it answers: its version
(Redis 7.0 or Valkey 7.2, or newer), that it does not evict keys, and that this
user may do what Berth does, by taking and giving back a permit.

With --writable, for a readiness probe, it says only whether the server that the
address leads to takes writes now: nothing is repeated, and 3 s are the limit.

Exit codes: 0 it will do, maybe with warnings; 1 it will not; 69 it cannot be
reached, or refuses.`,
		Args: Arguments(),
		RunE: a.Runs(func(cmd *cobra.Command, _ []string) error {
			if writable {
				return a.checkWritable(cmd.Context())
			}
			return a.WithServer(cmd.Context(), func(ctx context.Context, c *Connection) error {
				return a.check(ctx, c, node.Config{AllowEviction: eviction}, a.printReport)
			})
		}),
	}
	cmd.Flags().BoolVar(&eviction, "allow-eviction", false, "let a server pass that may evict keys, and permits with them")
	cmd.Flags().BoolVar(&writable, "writable", false, "only see whether the server takes writes now")
	return cmd
}

// probeLimit bounds a probe: one that takes longer than its period is of no use.
const probeLimit = 3 * time.Second

// checkWritable makes connections of its own, so that it sees where new ones are led.
func (a *App) checkWritable(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, max(probeLimit, Times.Call), fmt.Errorf("no answer within %s", probeLimit))
	defer cancel()
	return a.WithServer(ctx, func(ctx context.Context, c *Connection) error {
		now := node.Config{AllowEviction: true, Retry: berth.Retry{Attempts: 1}}
		return a.check(ctx, c, now, func(*Connection, berth.Report) error {
			_, err := fmt.Fprintln(a.Out, "The server takes writes.")
			return err
		})
	})
}

// checkDocument is the JSON document of check. Its field names are promised.
type checkDocument struct {
	OK      bool   `json:"ok"`
	Problem string `json:"problem"` // "" where ok
	Address string `json:"address"`
	berth.Report
}

func (a *App) check(ctx context.Context, c *Connection, cfg node.Config, show func(*Connection, berth.Report) error) error {
	n, err := c.Node(cfg)
	if err != nil {
		return err
	}
	semaphore.New(n, "check", 1, semaphore.Config{}) // so Check takes a permit, of a name of its own
	report, err := n.Check(ctx)
	unfit := errors.Is(err, berth.ErrIncompatible) || errors.Is(err, berth.ErrInvalidConfig)
	if err != nil && !unfit {
		return err
	}
	if unfit {
		err = Exit(ExitFailed, err)
	}
	if a.JSON {
		document := checkDocument{OK: err == nil, Address: c.Address, Report: report}
		if err != nil {
			document.Problem = err.Error()
		}
		return errors.Join(PrintJSON(a, "", document), err)
	}
	if err != nil {
		return err
	}
	return show(c, report)
}

func (a *App) printReport(c *Connection, report berth.Report) error {
	server := report.Server
	if server != "" && report.Version != "" {
		server += " " + report.Version
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{
		{"address", c.Address},
		{"server", server},
		{"mode", report.Mode},
		{"eviction", report.Eviction},
		{"latency", text.Human(report.Latency)},
	} {
		fmt.Fprintf(w, "%s\t%s\n", line[0], text.Plain(cmp.Or(line[1], "not told")))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, warning := range report.Warnings {
		fmt.Fprintf(a.Out, "warning: %s\n", text.Escaped(warning))
	}
	_, err := fmt.Fprintln(a.Out, "The server will do.")
	return err
}
