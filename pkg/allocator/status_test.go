package allocator_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/scripts"
)

// parsed is a Go file.
func parsed(t *testing.T, file string) *ast.File {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	return tree
}

// literal is the value of a text in Go.
func literal(t *testing.T, e ast.Expr) string {
	t.Helper()
	value, err := strconv.Unquote(e.(*ast.BasicLit).Value)
	require.NoError(t, err)
	return value
}

// constants are the values of a file's text constants for whose name and type
// wanted is true, sorted.
func constants(t *testing.T, file string, wanted func(name, kind string) bool) []string {
	t.Helper()
	var values []string
	for _, decl := range parsed(t, file).Decls {
		block, ok := decl.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		for _, spec := range block.Specs {
			value := spec.(*ast.ValueSpec)
			kind, _ := value.Type.(*ast.Ident)
			if kind == nil {
				kind = &ast.Ident{}
			}
			for i, name := range value.Names {
				if wanted(name.Name, kind.Name) {
					values = append(values, literal(t, value.Values[i]))
				}
			}
		}
	}
	slices.Sort(values)
	return values
}

// distinct sorts and drops repeats.
func distinct(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}

// source is a script as it is written, comments included.
func source(t *testing.T, path string) string {
	t.Helper()
	raw, err := fs.ReadFile(scripts.FS, path)
	require.NoError(t, err)
	return string(raw)
}

// found are the first groups of all matches, sorted and without repeats.
func found(pattern, text string) []string {
	var words []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		words = append(words, match[1])
	}
	return distinct(words)
}

func TestTheWordsOfAResourceAreItsStates(t *testing.T) {
	t.Parallel()
	states := []string{
		string(allocator.Absent), string(allocator.Damaged), string(allocator.Free), string(allocator.Leased), string(allocator.Resting),
	}
	require.Equal(t, []string{reader.Absent, reader.Damaged, reader.Free, reader.Leased, reader.Resting}, states)
	require.Equal(t, states, constants(t, "resources.go", func(_, kind string) bool { return kind == "State" }))
}

// fieldsOf are the keys of a table in Lua that is written in one expression.
func fieldsOf(t *testing.T, table, raw string) []string {
	t.Helper()
	body := regexp.MustCompile(`(?s)local ` + table + ` = \{(.*?)\}`).FindStringSubmatch(raw)
	require.NotNil(t, body)
	return found(`(\w+) = `, body[1])
}

// problemWords are the words that pool_inspect has for what does not fit together.
func problemWords(t *testing.T) []string {
	t.Helper()
	raw := source(t, "pool_inspect.lua") + source(t, "pool/audit.lua")
	words := found(`problem\("(\w+)"`, raw)
	for _, choice := range regexp.MustCompile(`problem\([^"\n]+ and "(\w+)" or "(\w+)"`).FindAllStringSubmatch(raw, -1) {
		words = append(words, choice[1:]...)
	}
	return distinct(words)
}

func TestTheProblemsOfAnInspectionAreThoseThatGoExplains(t *testing.T) {
	t.Parallel()
	raw := source(t, "pool_inspect.lua")
	var explained, counted []string
	ast.Inspect(parsed(t, "inspect.go"), func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			if n.Names[0].Name != "problems" {
				return true
			}
			for _, e := range n.Values[0].(*ast.CompositeLit).Elts {
				pair := e.(*ast.KeyValueExpr)
				explained = append(explained, literal(t, pair.Key))
				require.Equal(t, 1, strings.Count(literal(t, pair.Value), "%q"))
			}
		case *ast.TypeSpec:
			if n.Name.Name != "sums" {
				return true
			}
			for _, name := range n.Type.(*ast.StructType).Fields.List[0].Names {
				counted = append(counted, name.Name)
			}
		}
		return true
	})
	require.Equal(t, problemWords(t), distinct(explained))
	require.Equal(t, fieldsOf(t, "seen", raw), distinct(slices.Clone(counted)))

	// The order of the counts is that of the reply.
	reply := regexp.MustCompile(`(?s)local reply = \{(.*?)\n\}`).FindStringSubmatch(raw)
	require.NotNil(t, reply)
	var order []string
	for _, field := range regexp.MustCompile(`seen\.(\w+)`).FindAllStringSubmatch(reply[1], -1) {
		order = append(order, field[1])
	}
	require.Equal(t, order, counted)
}

func TestThePoliciesOfTheScriptsAreThoseOfTheConfig(t *testing.T) {
	t.Parallel()
	var letters []string
	for _, p := range []allocator.Policy{allocator.LeastRecent, allocator.MostRecent, allocator.Random} {
		letters = append(letters, p.String()[:1])
	}
	line := regexp.MustCompile(`--   policy +(.*)`).FindStringSubmatch(source(t, "pool/settings.lua"))
	require.NotNil(t, line)
	require.Equal(t, letters, found(`(\w): `, line[1]))
	require.Subset(t, letters, found(`w\.policy == "(\w)"`, source(t, "pool/pick.lua")))
	require.Equal(t, "least recent", allocator.LeastRecent.String())
	require.Equal(t, "most recent", allocator.MostRecent.String())
	require.Equal(t, "random", allocator.Random.String())
	require.Equal(t, "unknown", allocator.Policy(9).String())
	require.Equal(t, "unknown", allocator.Policy(-1).String())
}
