package semaphore

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/scriptkit"
)

// Library is what the client runs its scripts from.
func Library() *scriptkit.Library { return library() }

// Statuses are the status words that this package declares, sorted: the values
// of its constants status....
func Statuses(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "script.go", nil, 0)
	require.NoError(t, err)
	var words []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "status") || len(spec.Values) != 1 {
			return true
		}
		if value, ok := spec.Values[0].(*ast.BasicLit); ok {
			word, err := strconv.Unquote(value.Value)
			require.NoError(t, err)
			words = append(words, word)
		}
		return true
	})
	slices.Sort(words)
	return words
}

// Ticket is when the permit's claim came.
func (p *Permit) Ticket() int64 { return p.hold.Ticket() }
