package observe_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/observe"
)

var update = flag.Bool("update", false, "write the tables of docs/events.md anew")

const docsFile = "../../docs/events.md"

// sentBy is who sends the kinds of each const block of kind.go, in order.
var sentBy = []string{
	"semaphore, lock, pool", // the course of a claim
	"semaphore, lock, pool", // the course of a hold
	"semaphore, lock, pool", // a client
	"semaphore",
	"lock",
	"lock", // a swarm
	"pool",
}

// kindDoc is a Kind constant as kind.go declares it.
type kindDoc struct {
	constant string
	kind     observe.Kind
	when     string
	fields   string // "Ahead, Weight"
	level    string
	sentBy   string
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	require.NoError(t, err)
	return parsed
}

// constBlocks returns the const blocks of a file.
func constBlocks(file *ast.File) (blocks []*ast.GenDecl) {
	for _, decl := range file.Decls {
		if block, ok := decl.(*ast.GenDecl); ok && block.Tok == token.CONST {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// constant returns the name and the text of a constant.
func constant(t *testing.T, spec ast.Spec) (name, value string) {
	t.Helper()
	values := spec.(*ast.ValueSpec)
	value, err := strconv.Unquote(values.Values[0].(*ast.BasicLit).Value)
	require.NoError(t, err)
	return values.Names[0].Name, value
}

var kindComment = regexp.MustCompile(`^(\w+): (.+) Fills: ([\w, ]+)\. Level: (\w+)\.$`)

func kindDocs(t *testing.T) (docs []kindDoc) {
	t.Helper()
	blocks := constBlocks(parse(t, "kind.go"))
	require.Len(t, sentBy, len(blocks), "sentBy has one entry for each const block")
	for i, block := range blocks {
		for _, spec := range block.Specs {
			name, value := constant(t, spec)
			comment := oneLine(spec.(*ast.ValueSpec).Doc)
			found := kindComment.FindStringSubmatch(comment)
			require.NotNil(t, found, "the comment of %s has another form: %s", name, comment)
			require.Equal(t, name, found[1])
			docs = append(docs, kindDoc{name, observe.Kind(value), upperFirst(found[2]), found[3], found[4], sentBy[i]})
		}
	}
	return docs
}

func oneLine(comment *ast.CommentGroup) string {
	return strings.Join(strings.Fields(comment.Text()), " ")
}

func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func TestEveryKindIsListedNamedAndDocumented(t *testing.T) {
	event := reflect.TypeFor[observe.Event]()
	var declared []observe.Kind
	for _, doc := range kindDocs(t) {
		declared = append(declared, doc.kind)
		require.Equal(t, snakeCase(doc.constant), string(doc.kind))
		require.Equal(t, doc.kind.Level().String(), doc.level, "level of %s", doc.constant)
		for field := range strings.SplitSeq(doc.fields, ", ") {
			_, ok := event.FieldByName(field)
			require.True(t, ok, "%s fills %q, which Event does not have", doc.constant, field)
		}
	}
	require.Equal(t, declared, observe.Kinds())
}

func snakeCase(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// The tables of docs/events.md are made of the comments in this package:
//
//	go test ./pkg/observe -run TestTheDocsSayWhatTheCodeSays -update
func TestTheDocsSayWhatTheCodeSays(t *testing.T) {
	raw, err := os.ReadFile(docsFile)
	require.NoError(t, err)
	docs := string(raw)
	want := replaceTable(t, docs, "kinds", kindTable(t))
	want = replaceTable(t, want, "fields", fieldTable(t))
	if *update {
		require.NoError(t, os.WriteFile(docsFile, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, docs, "docs/events.md is behind the code; run this test with -update")
}

// replaceTable puts table between the marks of that name.
func replaceTable(t *testing.T, docs, name, table string) string {
	t.Helper()
	begin, end := "<!-- "+name+": generated -->\n", "<!-- "+name+": end -->\n"
	before, rest, ok := strings.Cut(docs, begin)
	require.True(t, ok, "no %s", begin)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "no %s", end)
	return before + begin + table + end + after
}

func kindTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| kind | when | fields | level | sent by |\n|---|---|---|---|---|\n")
	for _, doc := range kindDocs(t) {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", doc.kind, doc.when, doc.fields, doc.level, doc.sentBy)
	}
	return b.String()
}

func fieldTable(t *testing.T) string {
	t.Helper()
	event, ok := parse(t, "event.go").Scope.Lookup("Event").Decl.(*ast.TypeSpec)
	require.True(t, ok)
	var b strings.Builder
	b.WriteString("| field | meaning |\n|---|---|\n")
	for _, field := range event.Type.(*ast.StructType).Fields.List {
		for _, name := range field.Names {
			meaning := strings.TrimPrefix(oneLine(field.Doc), name.Name+" ")
			fmt.Fprintf(&b, "| `%s` | %s |\n", name, upperFirst(strings.TrimPrefix(meaning, "is ")))
		}
	}
	return b.String()
}
