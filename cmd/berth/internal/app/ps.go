package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
)

// psCommand is berth ps, which lists claims over all kinds.
func (a *App) psCommand() *cobra.Command {
	var f inspect.ClaimFilter
	var kinds, metas []string
	var within time.Duration
	var page Paging
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List who holds and who waits, over semaphores, locks and pools",
		Long: `List holds and waits over semaphores, locks and pools, one a line, those that last longest
first. FOR is how long a claim has held or waited; LEFT is what is left of a lease or, of a
claim that waits, how long it stays in line if nothing is heard of its process. PROCESS is
that of a hold: renewing; overdue, where it should have renewed by now; fixed, endless or
detached, where nobody renews it; unconfirmed, where it has made no call yet; dead, of a
claim that waits. It reads only.

All names of the namespace are gone through: of the most contended ones alone 'berth top'
tells. What was not read --within the time is left out, and the output is said to be partial.`,
		Example: "  berth ps --waiting --limit 10\n  berth ps --label 'host-7/*' --watch\n  berth ps --kind lock --meta job=42 --json",
		Args:    Arguments(),
	}
	order := sortFlag(cmd, "for", view.ClaimOrders)
	cmd.RunE = a.Runs(func(cmd *cobra.Command, _ []string) (err error) {
		if f.Kinds, err = KindsOf(kinds...); err != nil {
			return err
		}
		f.Meta, err = pairs(metas)
		if within <= 0 {
			err = cmp.Or(err, berth.Invalid("--within", "%s is not above 0", within))
		}
		by, unknown := order()
		if err := cmp.Or(err, page.Check(), unknown, a.checkForm()); err != nil {
			return err
		}
		return a.ps(cmd.Context(), f, within, by, page.Of(a))
	})
	flags := cmd.Flags()
	flags.StringVar(&f.Node, "node", "", "only of the node with this `ID`")
	flags.StringVar(&f.Owner, "owner", "", "only for this `OWNER`")
	flags.StringVar(&f.Label, "label", "", "only of processes with this label `TEXT`; with a * at its end, of all that begin so")
	flags.StringArrayVar(&metas, "meta", nil, "only with this `KEY=VALUE`; repeat it for more")
	kindsFlag(cmd, &kinds)
	flags.BoolVar(&f.Holding, "holding", false, "only holds")
	flags.BoolVar(&f.Waiting, "waiting", false, "only waits")
	TimeVar(flags, &within, "within", 10*time.Second, "leave out what is not read by then")
	page.Bind(cmd)
	a.formFlag(cmd, namedHelp)
	a.Watch(cmd, watch.ClaimsEvery)
	return cmd
}

// pairs reads the pairs of --meta.
func pairs(metas []string) (map[string]string, error) {
	found := make(map[string]string)
	for _, meta := range metas {
		key, value, ok := strings.Cut(meta, "=")
		if !ok || key == "" {
			return nil, berth.Invalid("--meta", "%q is not KEY=VALUE", meta)
		}
		found[key] = value
	}
	return found, nil
}

func (a *App) ps(ctx context.Context, f inspect.ClaimFilter, within time.Duration, by view.Order[inspect.Claim], most int) error {
	return a.WithReader(ctx, func(ctx context.Context, read *inspect.Reader) error {
		found, err := AllClaims(ctx, read, f, within)
		if err != nil {
			return err
		}
		filtered := len(f.Kinds) > 0 || len(f.Meta) > 0 || f.Node+f.Owner+f.Label != "" || f.Holding || f.Waiting
		none := "No claim was found"
		if filtered {
			none = "No claim that matches was found"
		}
		by.Sort(found.Items)
		shown := columns(a, listed, wide, named(len(f.Kinds) == 1, func(c *view.Claim) berth.Ref { return berth.Ref{Kind: c.Kind, Name: c.Name} }))
		return List(a, "", found, none, shown, view.Listed(found.Items), most)
	})
}

// AllClaims reads the claims that a filter means, for so long.
func AllClaims(
	ctx context.Context, read *inspect.Reader, f inspect.ClaimFilter, within time.Duration,
) (found inspect.Page[inspect.Claim], _ error) {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	deadline, _ := limited.Deadline()
	ranOut := func(err error) bool { // a call may notice before the context does
		return ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && !time.Now().Before(deadline)
	}
	var failed error
	partial := false
	found, _ = pages(0, func(cursor string) (page inspect.Page[inspect.Claim], err error) {
		page, failed = read.Claims(limited, f, cursor, 1000)
		partial = partial || slices.ContainsFunc(page.Problems, ranOut)
		page.Problems = slices.DeleteFunc(page.Problems, ranOut)
		return page, failed
	}, func(c inspect.Claim) string { return string(c.Kind) + c.ID() })
	if failed != nil {
		switch over := ctx.Err() == nil && limited.Err() != nil || ranOut(failed); {
		case over && found.At.IsZero(): // that nothing was read is not that there is nothing
			return found, Exit(exitUnavailable, fmt.Errorf("nothing was read within %s: %s", within, strings.TrimPrefix(failed.Error(), "berth: ")))
		case !over:
			return found, failed
		}
		found.Problems = found.Problems[:len(found.Problems)-1] // the last one is that
	}
	found.Partial = found.Partial || partial || len(found.Problems) > 0
	return found, nil
}

var (
	listed = view.Claims.Pick("KIND", "NAME", "RESOURCE", "DOES", "FOR", "LEFT", "PROCESS", "OWNER", "LABEL", "NODE", "CLAIM")
	wide   = view.Claims.Pick("KIND", "NAME", "RESOURCE", "ONLY", "DOES", "AHEAD", "PRIORITY", "FENCE", "WEIGHT", "FOR", "LEASE", "LEFT", "PROCESS",
		"OWNER", "LABEL", "NODE", "CLAIM", "METADATA")
)
