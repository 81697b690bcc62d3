package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// ReleaseHelp is what the help of all that release has in common; it takes the name of
// the kind's command, and what NAME alone does.
const ReleaseHelp = `
The first in line gets what is released, in the same step. The process that had it is
told, and its hold ends; until it has heard, two may be inside.

With CLAIM, which 'berth %[1]s show' tells, that one hold or that one wait ends. --owner
and --node end what an owner or a node holds and what they have waiting: of NAME, or of
the namespace. --all ends all holds: of NAME, or of the namespace; who waits stays in
line. %[2]s

Exit code 1: nothing of what was named is held or waits, or its time was over.`

// Releasing is a command that ends the claims of others.
type Releasing struct {
	Kind      keyspace.Kind
	One       bool // a name has one holder, and alone means that one's holds
	Resources bool // a name has resources

	forced bool
	all    bool
	target berth.Target
	of     *resourceArgument // nil where there are no resources
}

// ReleaseCommand completes a command that ends the claims of others.
func (a *App) ReleaseCommand(r *Releasing, cmd *cobra.Command) *cobra.Command {
	cmd.Args = ArgumentsFrom(0, "NAME", "CLAIM")
	cmd.ValidArgsFunction = Completing(a.Names(r.Kind), a.claims(r.Kind))
	cmd.RunE = a.Runs(func(cmd *cobra.Command, args []string) error {
		if err := cmp.Or(NeedForce(r.forced), r.read(cmd, args)); err != nil {
			return err
		}
		return a.WithNode(cmd.Context(), node.Config{}, func(ctx context.Context, n *node.Node) error { return a.release(ctx, r, n) })
	})
	Force(cmd, &r.forced)
	flags := cmd.Flags()
	flags.StringVar(&r.target.Owner, "owner", "", "end what `OWNER` holds and has waiting; of a claim without an owner its id")
	flags.StringVar(&r.target.Node, "node", "", "end what the node with this `ID` holds and has waiting")
	flags.BoolVar(&r.all, "all", false, "end all that is held of NAME or, without NAME, in the namespace")
	if !r.Resources {
		return cmd
	}
	r.of = &resourceArgument{}
	r.of.bind(cmd)
	cmd.ValidArgsFunction = Completing(a.Names(r.Kind), func(ctx context.Context, name string) ([]string, error) {
		claims, failed := a.claims(r.Kind)(ctx, name)
		keys, err := a.ResourcesOf(ctx, name)
		return append(claims, keys...), cmp.Or(failed, err)
	})
	none := func(context.Context, string) ([]string, error) { return nil, nil } // no name: the flag is not for it
	_ = cmd.RegisterFlagCompletionFunc("resource", CompletingMany(none, a.ResourcesOf))
	return cmd
}

// read fills in the target, and looks at it before anything is sent.
func (r *Releasing) read(cmd *cobra.Command, args []string) error {
	given := cmd.Flags().Changed
	t := &r.target
	t.Kind = r.Kind
	switch {
	case r.all && (len(args) > 1 || given("owner") || given("node") || r.of != nil && r.of.given(cmd)):
		return berth.Invalid("--all", "it ends all holds of NAME or of the namespace; leave out what else is named")
	case given("owner") && t.Owner == "":
		return berth.Invalid("--owner", "it is empty")
	case given("node") && t.Node == "":
		return berth.Invalid("--node", "it is empty")
	case r.of != nil && r.of.given(cmd) && len(args) == 0:
		return Usage("NAME is missing: the pool of the resource")
	case len(args) == 0 && !r.all && t.Owner == "" && t.Node == "":
		return Usage("NAME is missing; or --owner OWNER, --node NODE or --all")
	case len(args) == 0:
		t.All = r.all
		return nil
	}
	t.Name = args[0]
	if err := CheckName(t.Name); err != nil {
		return err
	}
	if r.of != nil && (r.of.given(cmd) || len(args) == 2 && args[1] != "" && !isClaim(args[1])) {
		if t.Owner != "" || t.Node != "" {
			return berth.Invalid("RESOURCE", "its holds end whoever has them; leave out --owner and --node")
		}
		return r.of.read(cmd, args[1:])
	}
	if len(args) == 2 {
		if t.Claim = args[1]; t.Claim == "" {
			return berth.Invalid("CLAIM", "it is empty")
		}
	}
	if len(args) == 1 && !r.One && !r.all && t.Owner == "" && t.Node == "" {
		return Usage("%s is missing: what of %q to release; with --all all its holds end", r.parts(), t.Name)
	}
	return nil
}

// parts are what a name has that can be released alone.
func (r *Releasing) parts() string {
	if r.of != nil {
		return "CLAIM or RESOURCE"
	}
	return "CLAIM"
}

// claimForm is what the ids of claims look like: a node, and what the node drew.
var claimForm = regexp.MustCompile(`^[0-9a-f]{16}\.[0-9a-v]{20}$`)

// isClaim reports whether a text looks like the id of a claim.
func isClaim(text string) bool { return claimForm.MatchString(text) }

// release ends what is meant. What was ended is told, also beside an error.
func (a *App) release(ctx context.Context, r *Releasing, n *node.Node) error {
	var ended int
	var err error
	if r.of != nil && r.of.key != "" {
		ended, err = a.releaseHolds(ctx, r, n)
	} else {
		ended, err = n.Operator().Release(ctx, r.target)
	}
	switch {
	case ended == 0 && errors.Is(err, berth.ErrNotHeld), // also where its time was over
		ended == 0 && err == nil && !r.target.All:
		return Exit(ExitFailed, errors.New(a.nothingOf(r)))
	case err == nil || ended > 0:
		return cmp.Or(a.printReleased(r, ended), err)
	}
	return err
}

// releaseHolds ends the holds of one resource.
func (a *App) releaseHolds(ctx context.Context, r *Releasing, n *node.Node) (ended int, err error) {
	one := r.target
	info, err := allocator.NewOperator(n).Resource(ctx, r.target.Name, r.of.key)
	if err != nil {
		return 0, err
	}
	if info.State == allocator.Absent {
		if r.of.flag == "" { // the id of a claim that is damaged may look like anything
			one.Claim = r.of.key
			ended, err = n.Operator().Release(ctx, one)
		}
		if ended == 0 && (err == nil || errors.Is(err, berth.ErrNotHeld)) {
			err = a.Absent(r.target.Name, r.of.key)
		}
		return ended, err
	}
	var errs []error
	for _, h := range info.Holders {
		one.Claim = h.ID
		count, err := n.Operator().Release(ctx, one)
		if ended += count; err != nil && !errors.Is(err, berth.ErrNotHeld) { // else it has ended by itself
			errs = append(errs, err)
		}
	}
	return ended, errors.Join(errs...)
}

// nothingOf says that nothing was ended of what was named.
func (a *App) nothingOf(r *Releasing) string {
	t := r.target
	who := "nobody"
	if t.Owner != "" {
		who = fmt.Sprintf("owner %q", t.Owner)
	}
	if t.Node != "" {
		who = strings.TrimPrefix(fmt.Sprintf("%s on node %q", who, t.Node), "nobody on ")
	}
	what := act.Nouns[r.Kind]
	if t.Name != "" {
		what = fmt.Sprintf("%s %q", act.Nouns[r.Kind], t.Name)
	}
	switch {
	case t.Claim != "" && who == "nobody":
		return fmt.Sprintf("no claim %q of %s in namespace %q, or no longer", t.Claim, what, a.Namespace)
	case t.Claim != "":
		return fmt.Sprintf("no claim %q of %s in namespace %q is of %s", t.Claim, what, a.Namespace, who)
	case r.of != nil && r.of.key != "":
		return fmt.Sprintf("nobody holds resource %s of %s in namespace %q", view.Key(r.of.key), what, a.Namespace)
	case who != "nobody" && t.Name == "":
		return fmt.Sprintf("%s neither holds a %s in namespace %q nor waits for one", who, what, a.Namespace)
	case who != "nobody":
		return fmt.Sprintf("%s neither holds %s in namespace %q nor waits for it", who, what, a.Namespace)
	}
	return fmt.Sprintf("nobody holds %s in namespace %q", what, a.Namespace)
}

func (a *App) printReleased(r *Releasing, ended int) error {
	t := r.target
	resource := ""
	if r.of != nil {
		resource = r.of.key
	}
	what := view.Count(ended, "claim")
	switch {
	case t.Claim != "":
		what = "claim " + text.Plain(t.Claim)
	case resource != "":
		what += " on " + view.Key(resource)
	}
	return Told(a, "", targetDocument{Target: t, Resource: resource, Released: &ended}, a.whole(t)+": "+what+" released")
}
