package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
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
	if !p.given && !a.JSON {
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
func Limited(out io.Writer, heading []string, rows [][]string, most int) error {
	rows, more := First(rows, most)
	err := Table(out, heading, rows)
	if err == nil && more > 0 {
		_, err = fmt.Fprintf(out, "... and %d more\n", more)
	}
	return err
}

// PrintPage prints the first entries of a listing as JSON, 0 is all; the name is that of what is listed, if it has one.
func PrintPage[E any](a *App, name string, page inspect.Page[E], most int) error {
	page.Items, _ = First(page.Items, most)
	return PrintJSON(a, name, page)
}

// orders are what --sort may be.
var orders = []string{"name", "held", "share", "waiting"}

// sorted sorts names by name, and then by an order.
func sorted(all []berth.Name, order string) {
	slices.SortFunc(all, func(x, y berth.Name) int { return strings.Compare(x.Name, y.Name) })
	slices.SortStableFunc(all, func(x, y berth.Name) int {
		switch order {
		case "held":
			return cmp.Compare(held(y), held(x))
		case "share":
			return cmp.Compare(y.Share(), x.Share())
		case "waiting":
			return cmp.Compare(y.Waiting, x.Waiting)
		}
		return 0
	})
}

// held is how much is held of a name; of a lock how long.
func held(n berth.Name) int {
	switch n.Kind {
	case keyspace.Lock:
		return int(n.Oldest)
	case keyspace.Pool:
		return n.Holders
	}
	return n.Held
}

// LsCommand completes a command that lists the names of a kind, of locks those that are held or paused; show prints the table.
func (a *App) LsCommand(kind keyspace.Kind, cmd *cobra.Command, show func(all []berth.Name, most int) error) *cobra.Command {
	var order string
	var page Paging
	cmd.Use = "ls"
	cmd.Args = Arguments()
	cmd.RunE = a.Runs(func(cmd *cobra.Command, _ []string) error {
		if err := page.Check(); err != nil {
			return err
		}
		if !slices.Contains(orders, order) {
			return berth.Invalid("--sort", "%q is none of %s", order, strings.Join(orders, ", "))
		}
		return a.WithReader(cmd.Context(), func(ctx context.Context, read *inspect.Reader) error {
			all, err := AllNames(ctx, read, inspect.NameFilter{Kinds: []keyspace.Kind{kind}})
			if kind == keyspace.Lock {
				all.Items = slices.DeleteFunc(all.Items, func(n berth.Name) bool { return n.Held == 0 && n.Pause == nil })
			}
			sorted(all.Items, order)
			return Listed(err, len(all.Items), func() error {
				if a.JSON {
					return PrintPage(a, "", all, page.Of(a))
				}
				return show(all.Items, page.Of(a))
			})
		})
	})
	page.Bind(cmd)
	cmd.Flags().StringVar(&order, "sort", "name", "`ORDER`: name, or most first: held, share (of what there is), waiting")
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(orders, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}
