package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// asked is where the names are listed that the line asks of a kind, a row a name.
const asked = "scripts/scripts.go"

// What a kind's file has under a name is a function, with a comment above it that begins
// with the name, or a value, which a comment may follow.
var (
	kindName     = regexp.MustCompile(`\bkind_[a-z]+\b`)
	kindFunction = regexp.MustCompile(`(?m)^local function (kind_[a-z]+)\(([^)]*)\)`)
	kindValue    = regexp.MustCompile(`(?m)^local (kind_[a-z]+) = (\S+)(?: -- (.*))?$`)
	kindComment  = regexp.MustCompile(`(?m)^-- (kind_[a-z]+): ((?:.*\n-- )*.*)\nlocal `)
	kindAsked    = regexp.MustCompile(`(?m)^\t"(kind_[a-z]+)", +// (\([^)]*\))? ?(\S.*)$`)
)

// kindRow is a name for which the line asks: its arguments, nil for a value, what it does,
// what each kind has under it, and whether a kind may do without.
type kindRow struct {
	call, does string
	args       []string
	kinds      map[string]string
	optional   bool
}

// kindsPage has the table of what the line asks of a kind, and what each kind answers. Its
// errors are names that a kind lacks, that nobody asks for, and other arguments.
func kindsPage(tree fs.FS) (page, error) {
	p := page{name: "kinds", title: "What the line asks of a kind"}
	scripts, err := readScripts(tree)
	if err != nil {
		return p, err
	}
	source, err := fs.ReadFile(tree, asked)
	if err != nil {
		return p, err
	}
	rows, order := map[string]*kindRow{}, []string{}
	needed, hooks, _ := strings.Cut(string(source), "var Hooks")
	for i, list := range []string{needed, hooks} {
		for _, match := range kindAsked.FindAllStringSubmatch(list, -1) {
			row := &kindRow{call: match[1] + match[2], does: match[3], kinds: map[string]string{}, optional: i > 0}
			if match[2] != "" {
				row.args = splitArgs(strings.Trim(match[2], "()"))
			}
			rows[match[1]] = row
			order = append(order, match[1])
		}
	}
	var problems []error
	var kinds []string
	used := map[string]bool{}
	for _, file := range slices.Sorted(maps.Keys(scripts)) {
		isKind := path.Dir(file) == "scripts/kind"
		for _, name := range kindName.FindAllString(scripts[file], -1) {
			used[name] = used[name] || !isKind
		}
		if !isKind {
			continue
		}
		kind := strings.TrimSuffix(path.Base(file), ".lua")
		kinds = append(kinds, kind)
		for _, problem := range readKind(rows, kind, scripts[file]) {
			problems = append(problems, fmt.Errorf("%s: %s", file, problem))
		}
	}
	var b strings.Builder
	b.WriteString("The files of `scripts/kind` define these names, and the verbs of `scripts/line` call them. " +
		"A name that a kind does not define is `false`.\n\n")
	fmt.Fprintf(&b, "| name | does | %s |\n|---|---|%s\n", strings.Join(kinds, " | "), strings.Repeat("---|", len(kinds)))
	for _, name := range order {
		row := rows[name]
		if !used[name] {
			problems = append(problems, fmt.Errorf("%s has %s, for which no script asks", asked, name))
		}
		fmt.Fprintf(&b, "| `%s` | %s |", row.call, row.does)
		for _, kind := range kinds {
			fmt.Fprintf(&b, " %s |", cell(row.kinds[kind]))
		}
		b.WriteString("\n")
	}
	p.text = b.String()
	return p, errors.Join(problems...)
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

// readKind fills the column of a kind from its file, and returns what is wrong with it.
func readKind(rows map[string]*kindRow, kind, script string) (problems []string) {
	comments := map[string]string{}
	for _, match := range kindComment.FindAllStringSubmatch(script, -1) {
		comments[match[1]] = strings.ReplaceAll(match[2], "\n-- ", " ")
	}
	for _, match := range kindFunction.FindAllStringSubmatch(script, -1) {
		name, args := match[1], splitArgs(match[2])
		row := rows[name]
		if row == nil {
			continue // the composer refuses it
		}
		if row.kinds[kind] = strings.TrimSuffix(comments[name], "."); row.kinds[kind] == "" {
			problems = append(problems, "the function "+name+" has no comment that begins with its name")
		}
		if !takes(row.args, args) {
			problems = append(problems, fmt.Sprintf("%s takes (%s); %s says (%s)",
				name, strings.Join(args, ", "), asked, strings.Join(row.args, ", ")))
		}
	}
	for _, match := range kindValue.FindAllStringSubmatch(script, -1) {
		name, value, comment := match[1], match[2], match[3]
		if row := rows[name]; row != nil {
			row.kinds[kind] = "`" + value + "`"
			if comment = cmp.Or(comment, comments[name]); comment != "" {
				row.kinds[kind] += ": " + strings.TrimSuffix(comment, ".")
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		switch {
		case rows[name].kinds[kind] != "":
		case rows[name].optional:
			rows[name].kinds[kind] = "`false`"
		default:
			problems = append(problems, name+" is not defined")
		}
	}
	return problems
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
