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
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

const releaseHelp = `End holds, or waits, whoever has them. The first in line gets what is released, in the same
step. The process that had it is told, and its hold ends; until it has heard, two may be inside.

With CLAIM, which 'berth show' tells, that one hold or that one wait ends. --owner and --node end
what an owner or a node holds and what they have waiting: of NAME, or of the namespace. --all
ends all holds: of NAME, or of the namespace; who waits stays in line. NAME alone ends a hold of
a lock with all its entries, each of which is a claim; of a semaphore or a pool it is refused, as
a CLAIM may be missing.
%s
Exit code 1: nothing of what was named is held or waits, or its time was over.`

const releaseResourceHelp = `
With RESOURCE, of a pool, the holds of that resource end. What has the form of a claim is taken
for one; a resource of that form is named by --resource. It rests after it where it has to.
`

// releasing is a command that ends the claims of others.
type releasing struct {
	*Verb

	forced bool
	all    bool
	target berth.Target
	of     resourceArgument
}

// ReleaseCommand makes a command that ends the claims of others.
func (a *App) ReleaseCommand(v *Verb) *cobra.Command {
	r := &releasing{Verb: v}
	parts, about := r.parts(v.below), ""
	cmd := &cobra.Command{
		Short:             "End somebody's holds, or take somebody's claim out of the line",
		SuggestFor:        []string{"unlock", "free", "kill"},
		Args:              ArgumentsFrom(0, "NAME", "CLAIM"),
		ValidArgsFunction: Completing(v.names(a), a.claims(v)),
	}
	if v.mayBe(keyspace.Pool) {
		about = releaseResourceHelp
		r.of.bind(cmd)
		cmd.ValidArgsFunction = Completing(v.names(a), func(ctx context.Context, name string) ([]string, error) {
			claims, failed := a.claims(v)(ctx, name)
			keys, err := a.ResourcesOf(ctx, name)
			return append(claims, keys...), cmp.Or(failed, err)
		})
		none := func(context.Context, string) ([]string, error) { return nil, nil } // no name: the flag is not for it
		_ = cmd.RegisterFlagCompletionFunc("resource", CompletingMany(none, a.ResourcesOf))
	}
	cmd.Use = "release {NAME " + parts + " | [NAME] {--owner OWNER | --node NODE | --all}} --force"
	cmd.Long = fmt.Sprintf(releaseHelp, about)
	cmd.Example = "  " + v.command("release "+releaseSample[v.below]+" --force")
	cmd.RunE = a.Runs(func(cmd *cobra.Command, args []string) error {
		if err := cmp.Or(NeedForce(r.forced), r.read(cmd, args, v.kind)); err != nil {
			return err
		}
		return a.Looking(cmd.Context(), func(ctx context.Context, n *node.Node, read *inspect.Reader) error {
			kind, err := v.meant(ctx, a, read, r.target.Name)
			if err = cmp.Or(err, r.read(cmd, args, kind)); err != nil {
				return err
			}
			return a.release(ctx, r, n)
		})
	})
	Force(cmd, &r.forced)
	flags := cmd.Flags()
	flags.StringVar(&r.target.Owner, "owner", "", "end what `OWNER` holds and has waiting; of a claim without an owner its id")
	flags.StringVar(&r.target.Node, "node", "", "end what the node with this `ID` holds and has waiting")
	flags.BoolVar(&r.all, "all", false, "end all that is held of NAME or, without NAME, in the namespace")
	v.bind(cmd, "the one in which NAME is in use, or without NAME all")
	return cmd
}

// releaseSample has for each kind what to release, for examples.
var releaseSample = map[keyspace.Kind]string{
	"": "--owner 'order 66'", keyspace.Lock: "nightly", keyspace.Sem: "gpu 0a1b2c3d4e5f6071.d3k5m7p9r1t3v5x7z9b0", keyspace.Pool: "proxies 10.0.0.1:3128",
}

// read fills in the target for a kind, "" for one that is not known yet, and looks at it before anything is sent.
func (r *releasing) read(cmd *cobra.Command, args []string, kind keyspace.Kind) error {
	given := cmd.Flags().Changed
	t := &r.target
	t.Kind, t.Claim, r.of.key = kind, "", ""
	resources := kind == "" || kind == keyspace.Pool
	switch {
	case r.all && (len(args) > 1 || given("owner") || given("node") || r.of.given(cmd)):
		return berth.Invalid("--all", "it ends all holds of NAME or of the namespace; leave out what else is named")
	case given("owner") && t.Owner == "":
		return berth.Invalid("--owner", "it is empty")
	case given("node") && t.Node == "":
		return berth.Invalid("--node", "it is empty")
	case r.of.given(cmd) && !resources:
		return berth.Invalid("--resource", "a %s has no resources", act.Nouns[kind])
	case r.of.given(cmd) && len(args) == 0:
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
	if r.of.given(cmd) || resources && len(args) == 2 && args[1] != "" && !isClaim(args[1]) {
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
	if len(args) == 1 && kind != "" && kind != keyspace.Lock && !r.all && t.Owner == "" && t.Node == "" {
		return Usage("%s is missing: what of %q to release; with --all all its holds end", strings.ReplaceAll(strings.Trim(r.parts(kind), "{}"), "|", "or"), t.Name)
	}
	return nil
}

// parts are what a name of a kind has that can be released alone.
func (r *releasing) parts(kind keyspace.Kind) string {
	switch kind {
	case keyspace.Sem:
		return "CLAIM"
	case keyspace.Lock:
		return "[CLAIM]"
	case keyspace.Pool:
		return "{CLAIM | RESOURCE}"
	}
	return "[CLAIM | RESOURCE]"
}

// claimForm is what the ids of claims look like: a node, and what the node drew.
var claimForm = regexp.MustCompile(`^[0-9a-f]{16}\.[0-9a-v]{20}$`)

// isClaim reports whether a text looks like the id of a claim.
func isClaim(text string) bool { return claimForm.MatchString(text) }

// release ends what is meant. The ended claims are printed, even with an error.
func (a *App) release(ctx context.Context, r *releasing, n *node.Node) error {
	var ended int
	var err error
	if r.of.key != "" {
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
func (a *App) releaseHolds(ctx context.Context, r *releasing, n *node.Node) (ended int, err error) {
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
func (a *App) nothingOf(r *releasing) string {
	t := r.target
	who := "nobody"
	if t.Owner != "" {
		who = fmt.Sprintf("owner %q", t.Owner)
	}
	if t.Node != "" {
		who = strings.TrimPrefix(fmt.Sprintf("%s on node %q", who, t.Node), "nobody on ")
	}
	what := cmp.Or(act.Nouns[t.Kind], "name")
	if t.Name != "" {
		what = fmt.Sprintf("%s %q", what, t.Name)
	}
	switch {
	case t.Claim != "" && who == "nobody":
		return fmt.Sprintf("no claim %q of %s in namespace %q, or no longer", t.Claim, what, a.Namespace)
	case t.Claim != "":
		return fmt.Sprintf("no claim %q of %s in namespace %q is of %s", t.Claim, what, a.Namespace, who)
	case r.of.key != "":
		return fmt.Sprintf("nobody holds resource %s of %s in namespace %q", view.Key(r.of.key), what, a.Namespace)
	case who != "nobody" && t.Name == "":
		return fmt.Sprintf("%s neither holds a %s in namespace %q nor waits for one", who, what, a.Namespace)
	case who != "nobody":
		return fmt.Sprintf("%s neither holds %s in namespace %q nor waits for it", who, what, a.Namespace)
	}
	return fmt.Sprintf("nobody holds %s in namespace %q", what, a.Namespace)
}

func (a *App) printReleased(r *releasing, ended int) error {
	t := r.target
	resource := r.of.key
	what := view.Count(ended, "claim")
	switch {
	case t.Claim != "":
		what = "claim " + text.Plain(t.Claim)
	case resource != "":
		what += " on " + view.Key(resource)
	}
	return Told(a, "", targetDocument{Target: t, Resource: resource, Released: &ended}, a.whole(t)+": "+what+" released")
}
