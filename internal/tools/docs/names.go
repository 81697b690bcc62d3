package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// names are the names that the source of all modules declares.
type names struct {
	packages map[string]*pkg // by name; commands are left out
	tests    map[string]bool
}

type pkg struct {
	declared map[string]bool
	types    map[string]*members
}

// members are the fields and methods of a type.
type members struct {
	own      map[string]bool
	embedded []string // types as pkg.Name, whose members are the type's too
}

var (
	testName = regexp.MustCompile(`^(Test|Example|Benchmark|Fuzz)([A-Z_]|$)`)
	// foreign are packages of others that docs may name.
	foreign = regexp.MustCompile(`^(context|errors|http|iter|json|os|rueidis|slog|synctest|testing|time|zap)$`)
)

// readNames parses all Go files, those of nested modules too.
func readNames(tree fs.FS) (*names, error) {
	n := &names{packages: map[string]*pkg{}, tests: map[string]bool{}}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && skipped(name) {
			return fs.SkipDir
		}
		if entry.IsDir() || path.Ext(name) != ".go" {
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		n.add(file, strings.HasSuffix(name, "_test.go"))
		return nil
	})
	return n, err
}

func (n *names) add(file *ast.File, test bool) {
	if test {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && testName.MatchString(f.Name.Name) {
				n.tests[f.Name.Name] = true
			}
		}
		return
	}
	name := file.Name.Name
	if name == "main" {
		return
	}
	p := n.packages[name]
	if p == nil {
		p = &pkg{declared: map[string]bool{}, types: map[string]*members{}}
		n.packages[name] = p
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			p.addFunc(d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				p.addSpec(name, spec)
			}
		}
	}
}

func (p *pkg) addFunc(f *ast.FuncDecl) {
	if f.Recv == nil {
		p.declared[f.Name.Name] = true
		return
	}
	receiver := typeName("", f.Recv.List[0].Type)
	p.typ(strings.TrimPrefix(receiver, ".")).own[f.Name.Name] = true
}

func (p *pkg) addSpec(name string, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, ident := range s.Names {
			p.declared[ident.Name] = true
		}
	case *ast.TypeSpec:
		p.declared[s.Name.Name] = true
		m := p.typ(s.Name.Name)
		switch t := s.Type.(type) {
		case *ast.StructType:
			m.add(name, t.Fields)
		case *ast.InterfaceType:
			m.add(name, t.Methods)
		default: // an alias has all members of what it stands for
			m.embedded = append(m.embedded, typeName(name, t))
		}
	}
}

func (p *pkg) typ(name string) *members {
	m := p.types[name]
	if m == nil {
		m = &members{own: map[string]bool{}}
		p.types[name] = m
	}
	return m
}

func (m *members) add(pkgName string, fields *ast.FieldList) {
	for _, field := range fields.List {
		if len(field.Names) == 0 {
			embedded := typeName(pkgName, field.Type)
			m.embedded = append(m.embedded, embedded)
			m.own[embedded[strings.LastIndex(embedded, ".")+1:]] = true
		}
		for _, ident := range field.Names {
			m.own[ident.Name] = true
		}
	}
}

// typeName is the type as pkg.Name, without pointer and type arguments.
func typeName(pkgName string, expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.Ident:
		return pkgName + "." + e.Name
	case *ast.SelectorExpr:
		return strings.TrimPrefix(typeName("", e.X), ".") + "." + e.Sel.Name
	case *ast.StarExpr:
		return typeName(pkgName, e.X)
	case *ast.IndexExpr:
		return typeName(pkgName, e.X)
	case *ast.IndexListExpr:
		return typeName(pkgName, e.X)
	}
	return "."
}

// lookUp finds Name, Type.Member, pkg.Name, pkg.Type.Member, or a test.
func (n *names) lookUp(name string) error {
	parts := strings.Split(name, ".")
	last := parts[len(parts)-1]
	if testName.MatchString(last) {
		if !n.tests[last] {
			return fmt.Errorf("there is no test %s", last)
		}
		return nil
	}
	first := parts[0]
	if ast.IsExported(first) {
		for p := range n.packages {
			if n.has(p, parts) {
				return nil
			}
		}
		return fmt.Errorf("there is no %s in any package", name)
	}
	switch {
	case n.packages[first] == nil && foreign.MatchString(first):
		return nil
	case n.packages[first] == nil:
		return fmt.Errorf("there is no package %s for %s", first, name)
	case !n.has(first, parts[1:]):
		return fmt.Errorf("there is no %s", name)
	}
	return nil
}

func (n *names) has(pkgName string, parts []string) bool {
	p := n.packages[pkgName]
	switch len(parts) {
	case 1:
		return p.declared[parts[0]]
	case 2:
		return n.hasMember(pkgName+"."+parts[0], parts[1], 0)
	}
	return false
}

// hasMember follows embedded types a few steps deep; more is a cycle.
func (n *names) hasMember(typ, member string, depth int) bool {
	pkgName, name, _ := strings.Cut(typ, ".")
	p := n.packages[pkgName]
	if p == nil || p.types[name] == nil || depth > 8 {
		return false
	}
	m := p.types[name]
	if m.own[member] {
		return true
	}
	for _, embedded := range m.embedded {
		if n.hasMember(embedded, member, depth+1) {
			return true
		}
	}
	return false
}
