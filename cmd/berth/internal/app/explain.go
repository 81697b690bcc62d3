package app

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// sample has a name of each kind for examples.
var sample = map[keyspace.Kind]string{"": "nightly", keyspace.Sem: "gpu", keyspace.Lock: "nightly", keyspace.Pool: "proxies"}

// ExplainCommand makes a command that says why a name or a claim stands still.
func (a *App) ExplainCommand(kind keyspace.Kind) *cobra.Command {
	return &cobra.Command{
		Use:   "explain NAME [CLAIM]",
		Short: "Say why it stands still, who is in the way, and what comes next by itself",
		Long: fmt.Sprintf(`Say of a %[1]s, or of one claim of it, what is waited for, who is in the way, and what
comes next by itself. It reads only.

A process that has died cannot be seen, only that its renewals have stopped: then it
"has not been heard of". How long a caller is ready to wait is not stored. With more than
one in the way a table shows those that have held longest: PROCESS says how that of a hold
stands, HEARD how long ago it was heard of. Where somebody waits and somebody holds, a cycle
is looked for that the %[1]s is in, for up to a second. Where an operator can mend it, it
ends with the command, for bash.

Exit code 1: the %[1]s, or the claim, is not known; 65: what is stored is damaged or not
Berth's; 69: a newer Berth has written it.`, act.Nouns[kind]),
		Example:           fmt.Sprintf("  berth %s explain %s", kind, sample[kind]),
		Args:              ArgumentsFrom(1, "NAME", "CLAIM"),
		ValidArgsFunction: Completing(a.Names(kind), a.claims(VerbOf(kind))),
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
				e, err := read.Explain(ctx, kind, args[0], claim)
				if err != nil {
					return err
				}
				d := explainDocument{Explanation: e}
				if len(e.Blockers) > 0 {
					c, partial, err := read.CycleOf(ctx, kind, args[0], cycleWithin)
					if d.Cycle, d.CyclePartial = c, partial || err != nil; err != nil {
						fmt.Fprintln(a.Err, OneLine("no cycle was looked for: "+strings.TrimPrefix(err.Error(), "berth: ")))
					}
				}
				return cmp.Or(a.printExplanation(d), explained(e))
			})
		}),
	}
}

// cycleWithin is how long an explanation looks for a cycle.
const cycleWithin = time.Second

// explainDocument is an explanation, and a cycle that the name is in.
type explainDocument struct {
	inspect.Explanation
	Cycle        *inspect.Cycle `json:"cycle,omitzero"`
	CyclePartial bool           `json:"cyclePartial,omitzero"` // not all was searched
}

// explained gives what is wrong with the name or claim itself an exit code. It is said already.
func explained(e inspect.Explanation) error {
	for _, r := range e.Reasons {
		switch r.Code {
		case inspect.Unknown, inspect.Absent:
			return Exit(ExitFailed, nil)
		case inspect.Damaged, inspect.Foreign:
			return Exit(ExitDamaged, nil)
		case inspect.Incompatible:
			return Exit(exitUnavailable, nil)
		}
	}
	return nil
}

var blockers = view.Claims.Pick("RESOURCE", "DOES", "LABEL", "OWNER", "NODE", "FENCE", "FOR", "LEFT", "PROCESS", "HEARD", "CLAIM")

func (a *App) printExplanation(e explainDocument) error {
	if a.JSON {
		return PrintJSON(a, "", e)
	}
	_, err := fmt.Fprintln(a.Out, e.Why)
	if e.Then != "" {
		_, err = fmt.Fprintln(a.Out, e.Then)
	}
	if len(e.Blockers) > 1 {
		fmt.Fprintln(a.Out)
		if err := Limited(a.Out, blockers, view.Listed(e.Blockers), 0); err != nil {
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
