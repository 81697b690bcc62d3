package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
)

func TestEveryReasonHasItsKind(t *testing.T) {
	kinds := map[berth.Reason]observe.Kind{}
	for kind, reasons := range map[observe.Kind][]berth.Reason{
		observe.Refused: {
			berth.ReasonFull, berth.ReasonResting, berth.ReasonEmpty, berth.ReasonHeld, berth.ReasonQueuedAhead,
			berth.ReasonPaused, berth.ReasonTooHeavy, berth.ReasonAbsent, berth.ReasonGone, berth.ReasonCapacity,
			berth.ReasonDiffers, berth.ReasonLimited, berth.ReasonTooManyEntries, berth.ReasonDraining,
		},
		observe.TimedOut:       {berth.ReasonTimedOut},
		observe.Cancelled:      {berth.ReasonCancelled, berth.ReasonClosed},
		observe.AttemptsUsedUp: {berth.ReasonAttempts},
		observe.Deadlock:       {berth.ReasonDeadlock},
		observe.Failed:         {berth.ReasonFailed},
	} {
		for _, reason := range reasons {
			kinds[reason] = kind
			require.Equal(t, kind, kindOf(reason), "%s", reason)
		}
	}
	require.Equal(t, observe.Failed, kindOf("of a later release"))

	// The reasons of the root package, so that a new one is not forgotten.
	file, err := parser.ParseFile(token.NewFileSet(), "../../errors.go", nil, 0)
	require.NoError(t, err)
	var declared []ast.Spec
	for _, decl := range file.Decls {
		if block, ok := decl.(*ast.GenDecl); ok && block.Tok == token.CONST {
			declared = append(declared, block.Specs...)
		}
	}
	require.Len(t, declared, len(kinds))
	for _, spec := range declared {
		values := spec.(*ast.ValueSpec)
		reason, err := strconv.Unquote(values.Values[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		require.Contains(t, kinds, berth.Reason(reason), values.Names[0].Name)
	}
}
