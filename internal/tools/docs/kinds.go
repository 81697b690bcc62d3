package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The table of docs/architecture.md says what the machine asks of a kind. Its lines are
//
//	| `kind_heavy(st, r)` | whether the claim never fits | by its weight | `false` | `false` |
//
// under a head that names the kinds: its third cell and those behind it.
var (
	kindName     = regexp.MustCompile(`\bkind_[a-z]+\b`)
	kindFunction = regexp.MustCompile(`(?m)^local function (kind_[a-z]+)\(([^)]*)\)`)
	kindValue    = regexp.MustCompile(`(?m)^local (kind_[a-z]+) = ([^\s]+)`)
	kindCell     = regexp.MustCompile("^`(kind_[a-z]+)(?:\\(([^)]*)\\))?`$")
	literal      = regexp.MustCompile(`^(true|false|\d+)$`)
)

// kindRow is a line of the table: a name, its arguments, nil for a constant, and what each
// kind does.
type kindRow struct {
	name  string
	args  []string
	kinds map[string]string
}

// checkKinds compares the table with the files of scripts/kind, and with what the scripts
// use.
func checkKinds(tree fs.FS, document string) error {
	text, err := fs.ReadFile(tree, document)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // told already
	}
	if err != nil {
		return err
	}
	scripts, err := readScripts(tree)
	if err != nil {
		return err
	}
	rows, kinds := kindTable(string(text))
	var problems []error
	tell := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf(document+": "+format, args...))
	}
	asked := map[string]bool{}
	for _, file := range slices.Sorted(maps.Keys(scripts)) {
		names := slices.Sorted(slices.Values(kindName.FindAllString(scripts[file], -1)))
		for _, name := range slices.Compact(names) {
			if rows[name] == nil {
				tell("the table of kinds lacks %s, which %s names", name, file)
			}
			asked[name] = asked[name] || path.Dir(file) != "scripts/kind"
		}
		kind := strings.TrimSuffix(path.Base(file), ".lua")
		if path.Dir(file) != "scripts/kind" {
			continue
		}
		if !slices.Contains(kinds, kind) {
			tell("the table of kinds has no column for %s", kind)
			continue
		}
		for _, problem := range compareKind(rows, kind, scripts[file]) {
			tell("%s: %s", file, problem)
		}
	}
	for _, kind := range kinds {
		if scripts["scripts/kind/"+kind+".lua"] == "" {
			tell("the table of kinds has a column for %s, which is no kind", kind)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if !asked[name] {
			tell("the table of kinds has %s, for which no script asks", name)
		}
	}
	return errors.Join(problems...)
}

// kindTable reads the table: its lines by their names, and the kinds that its head names.
func kindTable(document string) (rows map[string]*kindRow, kinds []string) {
	rows = map[string]*kindRow{}
	var head []string
	for line := range strings.Lines(document) {
		cells := cellsOf(line)
		if len(cells) == 0 {
			head = nil
			continue
		}
		if head == nil {
			head = cells
		}
		match := kindCell.FindStringSubmatch(cells[0])
		if match == nil || len(cells) != len(head) || len(cells) < 3 {
			continue
		}
		row := &kindRow{name: match[1], kinds: map[string]string{}}
		if strings.Contains(cells[0], "(") {
			row.args = splitArgs(match[2])
		}
		kinds = head[2:]
		for i, kind := range kinds {
			row.kinds[kind] = cells[i+2]
		}
		rows[row.name] = row
	}
	return rows, kinds
}

// cellsOf returns the cells of a table's line, nothing for another line.
func cellsOf(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") || !strings.HasSuffix(line, "|") || len(line) < 2 {
		return nil
	}
	cells := strings.Split(line[1:len(line)-1], "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

func splitArgs(text string) []string {
	args := []string{}
	for arg := range strings.SplitSeq(text, ",") {
		if arg = strings.TrimSpace(arg); arg != "" {
			args = append(args, arg)
		}
	}
	return args
}

// compareKind compares what a kind's file defines with its column.
func compareKind(rows map[string]*kindRow, kind, script string) (problems []string) {
	defined := map[string]bool{}
	for _, match := range kindFunction.FindAllStringSubmatch(script, -1) {
		name, args := match[1], splitArgs(match[2])
		defined[name] = true
		row := rows[name]
		if row == nil {
			continue // told already
		}
		if literal.MatchString(firstCode(row.kinds[kind])) {
			problems = append(problems, fmt.Sprintf("%s is a function; the table says %s", name, row.kinds[kind]))
		}
		if !takes(row.args, args) {
			problems = append(problems, fmt.Sprintf("%s takes (%s); the table says (%s)",
				name, strings.Join(args, ", "), strings.Join(row.args, ", ")))
		}
	}
	for _, match := range kindValue.FindAllStringSubmatch(script, -1) {
		name, value := match[1], match[2]
		defined[name] = true
		row := rows[name]
		if row == nil {
			continue
		}
		if told := firstCode(row.kinds[kind]); told != value && (literal.MatchString(value) || literal.MatchString(told)) {
			problems = append(problems, fmt.Sprintf("%s is %s; the table says %s", name, value, row.kinds[kind]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if !defined[name] {
			problems = append(problems, name+" is not defined")
		}
	}
	return problems
}

// firstCode is the code that a cell begins with, empty for none.
func firstCode(cell string) string {
	if !strings.HasPrefix(cell, "`") {
		return ""
	}
	code, _, _ := strings.Cut(cell[1:], "`")
	return code
}

// takes says whether a function of the parameters fits a call with the arguments: it may
// leave out the last ones, and give one that it does not need the name _.
func takes(args, params []string) bool {
	for i, param := range params {
		switch {
		case i < len(args) && args[i] == "...":
			return true
		case i >= len(args) || param != "_" && param != args[i]:
			return false
		}
	}
	return args != nil
}
