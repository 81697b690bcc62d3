package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// screen is how many lines a table has at most where nobody said how many.
const screen = 100

// Paging is how much of a listing is shown.
type Paging struct {
	limit int
	given bool
}

// Bind adds --limit to a command that lists.
func (p *Paging) Bind(cmd *cobra.Command) {
	cmd.Flags().Var(p, "limit", fmt.Sprintf("list up to `N` entries of each kind, 0 for all (default %d, with --json all)", screen))
}

// Set reads the flag.
func (p *Paging) Set(text string) error {
	p.given = true
	_, err := fmt.Sscanf(text+"\n", "%d\n", &p.limit)
	return err
}

func (p *Paging) String() string { return "" } // the default is in the help

// Type makes its errors those of other numbers.
func (p *Paging) Type() string { return "int" }

// Check refuses a limit that cannot be.
func (p *Paging) Check() error {
	if p.limit < 0 {
		return berth.Invalid("--limit", "%d is below 0; 0 lists all", p.limit)
	}
	return nil
}

// Of is how many entries are listed, 0 for all.
func (p *Paging) Of(a *App) int {
	if !p.given && !a.JSON && a.form != namesForm {
		return screen
	}
	return p.limit
}

// First returns the first entries of a listing, and how many there are beyond. 0 is no bound.
func First[E any](all []E, most int) (shown []E, more int) {
	if most == 0 || len(all) <= most {
		return all, 0
	}
	return all[:most], len(all) - most
}

// Limited prints the first rows of a table, and how many there are beyond.
func Limited[T any](a *App, columns view.Columns[T], all []T, most int) error {
	all, more := First(all, most)
	shown, rows := columns.Cells(all)
	err := table(a, heads(shown), rows)
	if err == nil && more > 0 {
		_, err = fmt.Fprintf(a.Out, "... and %d more\n", more)
	}
	return err
}

// heads are the heads of columns.
func heads[T any](columns view.Columns[T]) (all []string) {
	for _, c := range columns {
		all = append(all, c.Head)
	}
	return all
}

// Titled prints a table under a title, and nothing where it has no row.
func Titled[T any](a *App, title string, columns view.Columns[T], all []T, most int) error {
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintf(a.Out, "\n%s\n", title)
	return Limited(a, columns, all, most)
}

// List prints the first entries of a listing, 0 is all: as JSON, or as a table of their rows. The name is that of what is
// listed, if it has one. None says that there is none. Its error is also what the listing left out, as that of Listed.
func List[E, R any](a *App, name string, page inspect.Page[E], none string, columns view.Columns[R], rows []R, most int) error {
	return Listed(errors.Join(page.Problems...), len(page.Items), func() error {
		if a.JSON {
			page.Items, _ = First(page.Items, most)
			return PrintJSON(a, name, page)
		}
		if page.Partial {
			says := "there is more that was not read"
			if page.Unread > 0 {
				says += ": " + view.Count(page.Unread, "name") + " not looked at"
			}
			fmt.Fprintln(a.Err, "berth: partial: "+says)
		}
		if a.form == namesForm {
			return printNames(a, columns[:1], rows, most)
		}
		if len(rows) == 0 {
			_, err := fmt.Fprintf(a.Out, "%s in namespace %s.\n", none, text.Plain(a.Namespace))
			return err
		}
		return Limited(a, columns, rows, most)
	})
}

// OfName completes a command that lists what there is of one name, which is its argument.
func (a *App) OfName(
	kind keyspace.Kind, cmd *cobra.Command, f func(ctx context.Context, n *node.Node, read *inspect.Reader, name string, most int) error,
) *cobra.Command {
	var page Paging
	cmd.Args = Arguments("NAME")
	cmd.ValidArgsFunction = Completing(a.Names(kind))
	cmd.RunE = a.Runs(func(cmd *cobra.Command, args []string) error {
		if err := cmp.Or(CheckName(args[0]), page.Check()); err != nil {
			return err
		}
		return a.Looking(cmd.Context(), func(ctx context.Context, n *node.Node, read *inspect.Reader) error {
			return f(ctx, n, read, args[0], page.Of(a))
		})
	})
	page.Bind(cmd)
	return cmd
}
