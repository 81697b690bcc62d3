package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// The forms of a listing beside the usual one.
const (
	wideForm  = "wide"
	namesForm = "name"
	jsonForm  = "json"
)

// formFlag adds --output to a command that lists; names says how it prints names.
func (a *App) formFlag(cmd *cobra.Command, names string) {
	cmd.Flags().StringVarP(&a.form, "output", "o", "", "`FORM`: wide, with all columns; name, "+names+", one a line; json, as --json")
	completeFlag(cmd, "output", []string{wideForm, namesForm, jsonForm})
}

// checkForm refuses a form that cannot be.
func (a *App) checkForm() error {
	switch {
	case !slices.Contains([]string{"", wideForm, namesForm, jsonForm}, a.form):
		return berth.Invalid("--output", "%q is none of wide, name, json", a.form)
	case a.JSON && a.form != "" && a.form != jsonForm:
		return berth.Invalid("--output", "with --json it is JSON; leave one of them out")
	}
	a.JSON = a.JSON || a.form == jsonForm
	return nil
}

// columns are those of a listing in its form.
func columns[T any](a *App, usual, wide, names view.Columns[T]) view.Columns[T] {
	switch a.form {
	case wideForm:
		return wide
	case namesForm:
		return names
	}
	return usual
}

// named is the one column of a form that says names alone: of a kind that is known, or with the kind before them.
func named[T any](known bool, of func(*T) berth.Ref) view.Columns[T] {
	return view.Columns[T]{{Cell: func(row *T) view.Cell {
		ref := of(row)
		says := text.Plain(ref.Name)
		if !known {
			says = string(ref.Kind) + "/" + says
		}
		return view.Cell{{Says: says}}
	}}}
}

// namedHelp says how names are printed.
const namedHelp = "kind/name, with one --kind the name"

// printNames prints the cells of a column, each once.
func printNames[T any](a *App, column view.Columns[T], rows []T, most int) (err error) {
	said := map[string]bool{}
	for i := range rows {
		cell := column[0].Cell(&rows[i]).String()
		if !said[cell] && (most == 0 || len(said) < most) {
			said[cell] = true
			_, err = fmt.Fprintln(a.Out, cell)
		}
	}
	return err
}

// sortFlag adds --sort to a command that lists, and returns what reads it. By is the order without it.
func sortFlag[T any](cmd *cobra.Command, by string, orders []view.Order[T]) func() (view.Order[T], error) {
	var names, says []string
	for _, o := range orders {
		names, says = append(names, o.Name), append(says, o.Name+" ("+o.Says+")")
	}
	sort := cmd.Flags().String("sort", by, "`ORDER`: "+strings.Join(says, ", "))
	completeFlag(cmd, "sort", names)
	return func() (view.Order[T], error) {
		i := slices.Index(names, *sort)
		if i < 0 {
			return orders[0], berth.Invalid("--sort", "%q is none of %s", *sort, strings.Join(names, ", "))
		}
		return orders[i], nil
	}
}

// kindsFlag adds --kind to a command that lists.
func kindsFlag(cmd *cobra.Command, kinds *[]string) {
	cmd.Flags().StringArrayVar(kinds, "kind", nil, "only of `KIND`: sem, lock or pool; repeat it for more")
	CompleteKind(cmd)
}

// namesHelp says what a listing of names means.
const namesHelp = `

STATE is how bad it is: stuck until somebody mends it, with the reason, which 'berth explain'
tells; overdue, where a process should have been heard of; what somebody wants so: paused,
resting, wanted back, detached; else held, full, free. "cycle?" may be one. Where somebody
holds and somebody waits, cycles are looked for, for up to a second.`

// lsCommand is berth ls, which lists the names of all kinds.
func (a *App) lsCommand() *cobra.Command {
	return a.LsCommand("", &cobra.Command{
		Short: "List the semaphores, locks and pools in use",
		Long: `List the semaphores and locks of the namespace that are in use, and its pools, by name. FOR is
how long the one has held that HELD BY names, WAITED how long somebody has waited. All names
are gone through: 'berth top' shows those that contend most at less cost.`,
		Example: "  berth ls --sort state\n  berth ls --sort waiting --limit 10 --watch\n" +
			"  berth lock ls -o name | xargs -d '\\n' -n 1 berth lock explain",
	}, "No name is in use", "KIND", "NAME", "STATE", "HELD", "WAITING", "WAITED", "HELD BY", "FOR", "PAUSED")
}

// LsCommand completes a command that lists the names of a kind, "" for all, in these columns: of locks those that are held or
// paused. None says that there is none.
func (a *App) LsCommand(kind keyspace.Kind, cmd *cobra.Command, none string, heads ...string) *cobra.Command {
	var page Paging
	var kinds []string
	var cycles inspect.Cycles
	names := namedHelp
	if kind != "" {
		kinds, names = []string{string(kind)}, "the name"
	} else {
		kindsFlag(cmd, &kinds)
	}
	order := sortFlag(cmd, "name", view.Orders)
	cmd.Use, cmd.Long = "ls", cmd.Long+namesHelp
	cmd.Args = Arguments()
	cmd.RunE = a.Runs(func(cmd *cobra.Command, _ []string) error {
		by, err := order()
		some, wrong := KindsOf(kinds...)
		if err := cmp.Or(page.Check(), err, wrong, a.checkForm()); err != nil {
			return err
		}
		return a.WithReader(cmd.Context(), func(ctx context.Context, read *inspect.Reader) error {
			all := AllNames(ctx, read, inspect.NameFilter{Kinds: some})
			all.Items = slices.DeleteFunc(all.Items, func(n berth.Name) bool {
				return n.Kind == keyspace.Lock && n.Held == 0 && n.Pause == nil
			})
			for _, n := range all.Items {
				if n.Trouble.Level == berth.LevelStuck {
					all.Stuck++
				}
			}
			a.mark(ctx, read, &all, &cycles)
			by.Sort(all.Items)
			shown := columns(a, view.Names.Pick(heads...), view.Names,
				named(len(some) == 1, func(n *berth.Name) berth.Ref { return berth.Ref{Kind: n.Kind, Name: n.Name} }))
			return List(a, "", all, none, shown, all.Items, page.Of(a))
		})
	})
	page.Bind(cmd)
	a.formFlag(cmd, names)
	a.Watch(cmd, watch.NamesEvery)
	return cmd
}

// searchEvery is for how long a listing that is repeated tells of the cycles of one search.
const searchEvery = 30 * time.Second

// mark tells of names that they are in a cycle, as a search finds it. The last search counts while it is new.
func (a *App) mark(ctx context.Context, read *inspect.Reader, page *inspect.Page[berth.Name], last *inspect.Cycles) {
	if !slices.ContainsFunc(page.Items, func(n berth.Name) bool { return n.Live() > 0 && n.Holders > 0 }) {
		return
	}
	if time.Since(last.At) > searchEvery {
		found, err := read.Cycles(ctx, inspect.CycleOptions{Within: cycleWithin})
		switch *last = found; {
		case err != nil:
			fmt.Fprintln(a.Err, OneLine("no cycle was looked for: "+strings.TrimPrefix(err.Error(), "berth: ")))
		case found.Partial:
			fmt.Fprintln(a.Err, "berth: partial: there may be more cycles")
		}
	}
	inspect.Marked(page, last)
}
