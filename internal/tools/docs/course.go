package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"strings"
	"unicode"
)

// coursePage has the table of a claim's course: which rule an event follows in each phase, and
// what each rule does. It is the composite value course in internal/engine/machine.go; the
// comments of the constants and of the rules' functions explain it.
func coursePage(tree fs.FS) (page, error) {
	p := page{name: "course-of-a-claim", title: "The course of a claim"}
	machine, err := parseGo(tree, "internal/engine/machine.go")
	if err != nil {
		return p, err
	}
	course := map[string]map[string]string{} // event, phase: rule
	ast.Inspect(machine, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && spec.Names[0].Name == "course" && len(spec.Values) == 1 {
			entries(spec.Values[0], func(event string, phases ast.Expr) {
				course[event] = map[string]string{}
				entries(phases, func(phase string, rule ast.Expr) {
					if name, ok := rule.(*ast.Ident); ok {
						course[event][phase] = name.Name
					}
				})
			})
		}
		return true
	})
	phases, events := constantsOf(machine, "phase"), constantsOf(machine, "eventKind")
	if len(course) == 0 || len(phases) == 0 || len(events) == 0 {
		return p, errors.New("machine.go has no course, phases or events")
	}
	does, err := functionComments(tree, "internal/engine")
	if err != nil {
		return p, err
	}
	var b, rules strings.Builder
	b.WriteString("Which rule an event follows in each phase. An event changes nothing where the table is empty.\n\n| event | |")
	for _, phase := range phases {
		b.WriteString(" " + phase.name + " |")
	}
	b.WriteString("\n|" + strings.Repeat("---|", len(phases)+2) + "\n")
	told := map[string]bool{}
	for _, event := range events {
		fmt.Fprintf(&b, "| %s | %s |", hyphens(strings.TrimPrefix(event.name, "ev")), event.comment)
		for _, phase := range phases {
			rule := course[event.name][phase.name]
			if rule != "" {
				b.WriteString(" " + hyphens(rule))
			}
			b.WriteString(" |")
			if rule == "" || told[rule] {
				continue
			}
			told[rule] = true
			first, _, _ := strings.Cut(strings.TrimPrefix(does[rule], rule+" "), ". ")
			if first == "" {
				return p, fmt.Errorf("the rule %s has no comment", rule)
			}
			fmt.Fprintf(&rules, "- **%s** %s.\n", hyphens(rule), strings.TrimRight(first, "."))
		}
		b.WriteString("\n")
	}
	p.text = b.String() + "\n" + rules.String()
	return p, nil
}

// entries calls each with the keys and values of a composite value.
func entries(value ast.Expr, each func(key string, value ast.Expr)) {
	composite, ok := value.(*ast.CompositeLit)
	if !ok {
		return
	}
	for _, element := range composite.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok {
				each(key.Name, pair.Value)
			}
		}
	}
}

type commented struct{ name, comment string }

// constantsOf returns the constants of a type, but for the last, which is their number.
func constantsOf(file *ast.File, of string) (all []commented) {
	for _, decl := range file.Decls {
		block, ok := decl.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		if first, _ := block.Specs[0].(*ast.ValueSpec).Type.(*ast.Ident); first == nil || first.Name != of {
			continue
		}
		for _, spec := range block.Specs[:len(block.Specs)-1] {
			value := spec.(*ast.ValueSpec)
			all = append(all, commented{value.Names[0].Name, oneLine(value.Comment)})
		}
	}
	return all
}

// functionComments returns the comments of a package's functions.
func functionComments(tree fs.FS, folder string) (map[string]string, error) {
	files, err := fs.Glob(tree, folder+"/*.go")
	if err != nil {
		return nil, err
	}
	comments := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parseGo(tree, name)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				comments[f.Name.Name] = oneLine(f.Doc)
			}
		}
	}
	return comments, nil
}

// hyphens writes a name with hyphens in the place of capitals.
func hyphens(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
