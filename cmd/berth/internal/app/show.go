package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
)

// ShowDocument is what is printed of one name: how it stands, and what there is of it.
type ShowDocument struct {
	berth.Name
	Settings  allocator.Settings       `json:"settings,omitzero"`  // of a pool of which any are set
	HeldBy    []berth.Holder           `json:"heldBy,omitzero"`    // of semaphores and locks
	Resources []allocator.ResourceInfo `json:"resources,omitzero"` // of a pool
	Waiters   []berth.Waiter           `json:"waiters"`
	Once      *once.Last               `json:"once,omitzero"` // where runs are known
	GoesOn    bool                     `json:"goesOn,omitzero"`
	Problems  []error                  `json:"problems,omitzero"` // of what is left out
}

// showsDocument has a name of each kind that knows it.
type showsDocument struct {
	Items []ShowDocument `json:"items"`
}

// ReadClaims reads who holds the name and who waits for it. The error has the parts that were
// left out.
func (d *ShowDocument) ReadClaims(ctx context.Context, read *inspect.Reader) error {
	holders, failed := AllHolders(ctx, read, d.Kind, d.Name.Name)
	waiters, err := AllWaiters(ctx, read, d.Kind, d.Name.Name)
	d.HeldBy, d.Waiters, d.Problems = holders.Items, waiters.Items, append(holders.Problems, waiters.Problems...)
	return errors.Join(failed, err)
}

// Shown is a name as it is shown.
type Shown struct {
	ShowDocument
	Says   string               // how it stands, in a line
	Lists  func(most int) error // prints what there is of it
	Absent error                // why nothing is known of it, nil where something is
	Unread error                // of what could not be read
}

// Shower reads a name of one kind, to be shown.
type Shower func(ctx context.Context, n *node.Node, read *inspect.Reader, name string) (Shown, error)

// ShowCommand completes a command that shows one name.
func (a *App) ShowCommand(v *Verb, cmd *cobra.Command, showers map[keyspace.Kind]Shower) *cobra.Command {
	var page Paging
	cmd.Use = "show NAME"
	cmd.Args = Arguments("NAME")
	cmd.ValidArgsFunction = Completing(v.names(a))
	cmd.RunE = a.Runs(func(cmd *cobra.Command, args []string) error {
		if err := cmp.Or(CheckName(args[0]), page.Check()); err != nil {
			return err
		}
		return a.Show(cmd.Context(), v, args[0], page.Of(a), showers)
	})
	page.Bind(cmd)
	v.bind(cmd, "all")
	a.Watch(cmd, watch.NameEvery)
	return cmd
}

// ShowAnyCommand is berth show, which shows a name of all kinds.
func (a *App) ShowAnyCommand(showers map[keyspace.Kind]Shower) *cobra.Command {
	v := VerbOf("")
	return a.ShowCommand(v, &cobra.Command{
		Short: "Show who holds a name and who waits for it",
		Long: `Show a semaphore, a lock or a pool: who holds it and who waits for it, as 'berth sem|lock|pool
show' does, whose help says more.` + v.inAll() + ` With --json "items" has one document of each.

Exit code 1: the name is of no kind.`,
		Example: "  berth show gpu",
	}, showers)
}

// Show shows a name: as a document, at the top in a list; or under its kind. Its error is also that nothing is known of it.
func (a *App) Show(ctx context.Context, v *Verb, name string, most int, showers map[keyspace.Kind]Shower) error {
	return a.Looking(ctx, func(ctx context.Context, n *node.Node, read *inspect.Reader) (failed error) {
		all := []Shown{}
		for _, kind := range v.kinds() {
			s, err := showers[kind](ctx, n, read, name)
			switch failed = errors.Join(failed, err); {
			case errors.Is(err, berth.ErrUnavailable):
				return failed
			case err == nil && (s.Absent == nil || v.kind != ""):
				all = append(all, s)
			}
		}
		if failed == nil && len(all) == 0 {
			failed = v.none(a, name)
		}
		return cmp.Or(a.printShown(v, name, all, most), failed)
	})
}

// printShown prints names; of each of the lists of a document the first entries, 0 is all. Its error is also what is not shown.
func (a *App) printShown(v *Verb, name string, all []Shown, most int) (failed error) {
	d := showsDocument{[]ShowDocument{}}
	for i, s := range all {
		failed = errors.Join(failed, s.Unread, s.Absent)
		if s.Unread != nil && len(s.HeldBy)+len(s.Resources)+len(s.Waiters) == 0 || s.Absent != nil && !a.JSON {
			continue
		}
		if !a.JSON {
			v.heading(a, s.Kind, name, i > 0)
			fmt.Fprintln(a.Out, s.Says)
			if s.Pause != nil {
				fmt.Fprintln(a.Out, view.Paused(s.Pause))
			}
			if err := s.Lists(most); err != nil {
				return err
			}
		}
		s.HeldBy, _ = First(s.HeldBy, most)
		s.Resources, _ = First(s.Resources, most)
		s.Waiters, _ = First(s.Waiters, most)
		d.Items = append(d.Items, s.ShowDocument)
	}
	switch {
	case a.JSON && v.below == "" && (len(all) == 0 || len(d.Items) > 0):
		return cmp.Or(PrintJSON(a, "", d), failed)
	case a.JSON && len(d.Items) > 0:
		return cmp.Or(PrintJSON(a, "", d.Items[0]), failed)
	}
	return failed
}

// heading names a kind above what is shown of a name of it, at the top; again says that something stands above.
func (v *Verb) heading(a *App, kind keyspace.Kind, name string, again bool) {
	if again {
		fmt.Fprintln(a.Out)
	}
	if v.below == "" {
		fmt.Fprintf(a.Out, "%s %s\n", act.Nouns[kind], text.Plain(name))
	}
}

// inAll says in a command's help what it does at the top.
func (v *Verb) inAll() string {
	if v.below != "" {
		return ""
	}
	return " Without --kind each kind is told that\nknows the name."
}
