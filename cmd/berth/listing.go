package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
)

// screen is how many lines a table has at most where nobody said how many.
const screen = 100

// paging is how much of a listing is shown.
type paging struct {
	limit int
	given bool
}

// bind adds --limit to a command that lists.
func (p *paging) bind(cmd *cobra.Command) {
	cmd.Flags().Var(p, "limit", fmt.Sprintf("list up to `N` entries of each kind, 0 for all (default %d, with --json all)", screen))
}

func (p *paging) Set(text string) error {
	p.given = true
	_, err := fmt.Sscanf(text+"\n", "%d\n", &p.limit)
	return err
}

func (p *paging) String() string { return "" } // the default is in the help

// Type makes its errors those of other numbers.
func (p *paging) Type() string { return "int" }

func (p *paging) check() error {
	if p.limit < 0 {
		return berth.Invalid("--limit", "%d is below 0; 0 lists all", p.limit)
	}
	return nil
}

// of is how many entries are listed, 0 for all.
func (p *paging) of(a *app) int {
	if !p.given && !a.json {
		return screen
	}
	return p.limit
}

// first returns the first entries of a listing, and how many there are beyond. 0 is no bound.
func first[E any](all []E, most int) (shown []E, more int) {
	if most == 0 || len(all) <= most {
		return all, 0
	}
	return all[:most], len(all) - most
}

// limited prints the first rows of a table, and how many there are beyond.
func limited(out io.Writer, heading []string, rows [][]string, most int) error {
	rows, more := first(rows, most)
	err := table(out, heading, rows)
	if err == nil && more > 0 {
		_, err = fmt.Fprintf(out, "... and %d more\n", more)
	}
	return err
}

// orders are what --sort may be.
var orders = []string{"name", "held", "share", "waiting"}

// sorting has a comparison for each of orders.
type sorting[S any] map[string]func(x, y S) int

// lsCommand completes a command that lists names. It sorts what it lists.
func lsCommand[S any](a *app, p *paging, by sorting[S], cmd *cobra.Command, list func(ctx context.Context, sort func([]S)) error) *cobra.Command {
	var order string
	cmd.Use = "ls"
	cmd.Args = arguments()
	cmd.RunE = a.runs(func(cmd *cobra.Command, _ []string) error {
		if err := p.check(); err != nil {
			return err
		}
		if by[order] == nil {
			return berth.Invalid("--sort", "%q is none of %s", order, strings.Join(orders, ", "))
		}
		return list(cmd.Context(), func(all []S) {
			slices.SortFunc(all, by["name"])
			slices.SortStableFunc(all, by[order])
		})
	})
	p.bind(cmd)
	cmd.Flags().StringVar(&order, "sort", "name", "`ORDER`: name, or most first: held, share (of what there is), waiting")
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(orders, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}
