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
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// sample has a name of each kind for examples.
var sample = map[keyspace.Kind]string{"": "nightly", keyspace.Sem: "gpu", keyspace.Lock: "nightly", keyspace.Pool: "proxies"}

// ExplainCommand makes a command that says why a name or a claim stands still.
func (a *App) ExplainCommand(v *Verb) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain NAME [CLAIM]",
		Short: "Say why it stands still, who is in the way, and what comes next by itself",
		Long: fmt.Sprintf(`Say of a %s, or of one claim of it, what is waited for, who is in the way, and what
comes next by itself. It reads only.%s

A process that has died cannot be seen, only that its renewals have stopped: then it
"has not been heard of". How long a caller is ready to wait is not stored. With more than
one in the way a table shows those that have held longest: PROCESS says how that of a hold
stands, HEARD how long ago it was heard of. Where somebody waits and somebody holds, a cycle
is looked for that the name is in, for up to a second. Where an operator can mend it, it
ends with the command, for bash.

Exit code 1: it is stuck (in a certain cycle, or until somebody mends it), or the name or the
claim is not known; 65: what is stored is damaged or not Berth's; 69: a newer Berth has
written it.`, v.noun(), v.inAll()),
		Example:           "  " + v.command("explain "+sample[v.below]),
		Args:              ArgumentsFrom(1, "NAME", "CLAIM"),
		ValidArgsFunction: Completing(v.names(a), a.claims(v)),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			claim := ""
			if err := CheckName(args[0]); err != nil {
				return err
			}
			if len(args) == 2 {
				if claim = args[1]; claim == "" {
					return berth.Invalid("CLAIM", "it is empty")
				}
			}
			return a.WithReader(cmd.Context(), func(ctx context.Context, read *inspect.Reader) error {
				all := []explainDocument{}
				for _, kind := range v.kinds() {
					d, err := a.explain(ctx, read, kind, args[0], claim)
					if err != nil {
						return err
					}
					if v.kind != "" || !d.says(inspect.Unknown, inspect.Absent) {
						all = append(all, d)
					}
				}
				return a.printExplanations(v, args[0], claim, all)
			})
		}),
	}
	v.bind(cmd, "all")
	return cmd
}

func (a *App) explain(ctx context.Context, read *inspect.Reader, kind keyspace.Kind, name, claim string) (d explainDocument, err error) {
	if d.Explanation, err = read.Explain(ctx, kind, name, claim); err != nil || len(d.Blockers) == 0 {
		return d, err
	}
	c, partial, err := read.CycleOf(ctx, kind, name, cycleWithin)
	if d.Cycle, d.CyclePartial = c, partial || err != nil; err != nil {
		fmt.Fprintln(a.Err, OneLine("no cycle was looked for: "+strings.TrimPrefix(err.Error(), "berth: ")))
	}
	return d, nil
}

// cycleWithin is how long an explanation looks for a cycle.
const cycleWithin = time.Second

// explainDocument is an explanation, and a cycle that the name is in.
type explainDocument struct {
	inspect.Explanation
	Cycle        *inspect.Cycle `json:"cycle,omitzero"`
	CyclePartial bool           `json:"cyclePartial,omitzero"` // not all was searched
}

// explainsDocument has the explanations of a name of each kind that knows it.
type explainsDocument struct {
	Items []explainDocument `json:"items"`
}

// says reports whether one of these is among the reasons.
func (d *explainDocument) says(codes ...inspect.Code) bool {
	return slices.ContainsFunc(d.Reasons, func(r inspect.Reason) bool { return slices.Contains(codes, r.Code) })
}

// code is the exit code for what is wrong with the name or claim. It is said already.
func (d *explainDocument) code() int {
	switch {
	case d.says(inspect.Incompatible):
		return exitUnavailable
	case d.says(inspect.Damaged, inspect.Foreign):
		return ExitDamaged
	case d.says(inspect.Unknown, inspect.Absent), d.Trouble.Level == berth.LevelStuck, d.Cycle != nil && d.Cycle.Certain:
		return ExitFailed
	}
	return 0
}

var blockers = view.Claims.Pick("RESOURCE", "DOES", "LABEL", "OWNER", "NODE", "FENCE", "FOR", "LEFT", "PROCESS", "HEARD", "CLAIM")

// printExplanations prints those of a name, at the top each under its kind.
func (a *App) printExplanations(v *Verb, name, claim string, all []explainDocument) (err error) {
	code := 0
	for _, d := range all {
		code = max(code, d.code())
	}
	if len(all) == 0 {
		code = ExitFailed
	}
	switch {
	case a.JSON && v.below == "":
		err = PrintJSON(a, "", explainsDocument{all})
	case a.JSON:
		err = PrintJSON(a, "", all[0])
	default:
		for i, d := range all {
			v.heading(a, d.Kind, name, i > 0)
			err = cmp.Or(err, a.printExplanation(d))
		}
	}
	switch {
	case err != nil || code == 0:
		return err
	case len(all) == 0 && claim != "":
		return Exit(code, fmt.Errorf("no claim %q of a semaphore, lock or pool %q in namespace %q, or no longer", claim, name, a.Namespace))
	case len(all) == 0:
		return v.none(a, name)
	}
	return Exit(code, nil)
}

func (a *App) printExplanation(e explainDocument) error {
	_, err := fmt.Fprintln(a.Out, e.Why)
	if e.Then != "" {
		_, err = fmt.Fprintln(a.Out, e.Then)
	}
	if len(e.Blockers) > 1 {
		fmt.Fprintln(a.Out)
		if err := Limited(a, blockers, view.Listed(e.Blockers), 0); err != nil {
			return err
		}
		if e.More > 0 {
			_, err = fmt.Fprintf(a.Out, "... and %d more\n", e.More)
		}
		if len(e.Mend) > 0 || e.Cycle != nil || e.CyclePartial {
			fmt.Fprintln(a.Out)
		}
	}
	switch {
	case e.Cycle != nil && e.Cycle.Certain:
		a.printCycle("It is in a cycle", *e.Cycle)
	case e.Cycle != nil:
		a.printCycle("It may be in a cycle", *e.Cycle)
	case e.CyclePartial:
		fmt.Fprintln(a.Out, "No cycle was found that it is in, but not all was read.")
	}
	for _, m := range view.Mends(e.Mend, a.Where()...) {
		_, err = fmt.Fprintln(a.Out, m)
	}
	return err
}

// Where are the words by which another command means the same server and namespace as this one. An address with a password is
// left out.
func (a *App) Where() (words []string) {
	if a.given("redis") && !strings.Contains(a.URL, "@") {
		words = append(words, "--redis", a.URL)
	}
	if a.given("namespace") {
		words = append(words, "--namespace", a.Namespace)
	}
	return words
}
