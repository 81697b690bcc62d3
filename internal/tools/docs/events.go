package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
)

// sentBy is who sends the kinds of each const block of pkg/observe/kind.go, in order.
var sentBy = []string{
	"semaphore, lock, pool", // the course of a claim
	"semaphore, lock, pool", // the course of a hold
	"semaphore, lock, pool", // a client
	"semaphore",
	"lock",
	"lock", // a swarm
	"pool, once",
	"pool",
	"once",
	"leader",
	"a page",
}

// eventKind is a constant of the type observe.Kind, and what its comment says.
type eventKind struct{ constant, kind, when, fields, level, sentBy string }

var kindForm = regexp.MustCompile(`^(\w+): (.+) Fills: ([\w, ]+)\. Level: (\w+)\.$`)

// eventsPage has the kinds of events, and their fields.
func eventsPage(tree fs.FS) (page, error) {
	p := page{name: "events", title: "The kinds of events, and their fields"}
	kinds, err := eventKinds(tree)
	if err != nil {
		return p, err
	}
	var b strings.Builder
	b.WriteString("## Kinds\n\n| kind | when | fields | level | sent by |\n|---|---|---|---|---|\n")
	for _, k := range kinds {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", k.kind, k.when, k.fields, k.level, k.sentBy)
	}
	b.WriteString("\n## Fields\n\n| field | meaning |\n|---|---|\n")
	file, err := parseGo(tree, "pkg/observe/event.go")
	if err != nil {
		return p, err
	}
	for _, decl := range file.Decls {
		block, ok := decl.(*ast.GenDecl)
		if !ok || block.Tok != token.TYPE {
			continue
		}
		event := block.Specs[0].(*ast.TypeSpec)
		fields, ok := event.Type.(*ast.StructType)
		if event.Name.Name != "Event" || !ok {
			continue
		}
		for _, field := range fields.Fields.List {
			for _, name := range field.Names {
				meaning := strings.TrimPrefix(oneLine(field.Doc), name.Name+" ")
				fmt.Fprintf(&b, "| `%s` | %s |\n", name, upperFirst(strings.TrimPrefix(meaning, "is ")))
			}
		}
	}
	p.text = b.String()
	return p, nil
}

// eventKinds reads the constants of kind.go.
func eventKinds(tree fs.FS) (kinds []eventKind, err error) {
	file, err := parseGo(tree, "pkg/observe/kind.go")
	if err != nil {
		return nil, err
	}
	blocks := 0
	for _, decl := range file.Decls {
		block, ok := decl.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		if blocks++; blocks > len(sentBy) {
			break
		}
		for _, spec := range block.Specs {
			value := spec.(*ast.ValueSpec)
			name, comment := value.Names[0].Name, oneLine(value.Doc)
			form := kindForm.FindStringSubmatch(comment)
			if form == nil || form[1] != name {
				return nil, fmt.Errorf("the comment of observe.%s has another form: %s", name, comment)
			}
			kind, err := strconv.Unquote(value.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				return nil, err
			}
			kinds = append(kinds, eventKind{name, kind, upperFirst(form[2]), form[3], form[4], sentBy[blocks-1]})
		}
	}
	if blocks != len(sentBy) {
		return nil, fmt.Errorf("kind.go has another number of const blocks than sentBy has entries: %d", len(sentBy))
	}
	return kinds, nil
}

func parseGo(tree fs.FS, file string) (*ast.File, error) {
	source, err := fs.ReadFile(tree, file)
	if err != nil {
		return nil, err
	}
	return parser.ParseFile(token.NewFileSet(), file, source, parser.ParseComments)
}

// oneLine is the text of a comment.
func oneLine(comment *ast.CommentGroup) string {
	return strings.Join(strings.Fields(comment.Text()), " ")
}

func upperFirst(text string) string {
	first := text[:min(1, len(text))]
	return strings.ToUpper(first) + text[len(first):]
}
