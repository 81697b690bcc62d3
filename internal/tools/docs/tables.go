package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// A document has a table of what a file of scripts stores between the lines
//
//	<!-- table state/record: part | meaning -->
//	<!-- end table -->
//
// It is made of the first comment of scripts/state/record.lua that has such lines:
//
//	--   fence  the number of its grant,
//	--          0 while it waits
//	-- Then only a pool's claim has:
//	--   wants  what it asks for
//
// What stands between two groups of them becomes a line of the table. Numbers that the
// scripts have names for stand in the place of those names.
var (
	tableMark  = regexp.MustCompile(`(?m)^<!-- (table (\S+): (.+)) -->$`)
	commentRow = regexp.MustCompile(`^--   (\S.*?) {2,}(\S.*)$`)
	commentOn  = regexp.MustCompile(`^--    +(\S.*)$`)
	constant   = regexp.MustCompile(`(?m)^local ([a-z]+_[a-z_]+) = ([0-9]+(?: [*+-] [0-9]+)*)`)
	powers     = strings.NewReplacer("17592186044416", "2^44", "17592186044415", "2^44 - 1", "9007199254740991", "2^53 - 1")
)

const tableEnd = "<!-- end table -->"

// tables returns the sections of all such tables.
func tables(tree fs.FS) ([]section, error) {
	documents, err := fs.Glob(tree, "docs/*.md")
	if err != nil {
		return nil, err
	}
	scripts, err := readScripts(tree)
	if err != nil {
		return nil, err
	}
	numbers := constants(scripts)
	var sections []section
	var problems []error
	for _, file := range documents {
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return nil, err
		}
		for _, mark := range tableMark.FindAllStringSubmatch(string(text), -1) {
			table, err := tableOf(scripts["scripts/"+mark[2]+".lua"], mark[3], numbers)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: the table %s: %w", file, mark[2], err))
			}
			sections = append(sections, section{file: file, name: mark[1], text: table, table: true})
		}
	}
	return sections, errors.Join(problems...)
}

// readScripts returns the text of all scripts by their paths.
func readScripts(tree fs.FS) (map[string]string, error) {
	scripts := map[string]string{}
	err := fs.WalkDir(tree, "scripts", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".lua" {
			return err
		}
		text, err := fs.ReadFile(tree, name)
		scripts[name] = string(text)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return scripts, nil
	}
	return scripts, err
}

// constants returns what replaces the names of numbers in a text.
func constants(scripts map[string]string) func(string) string {
	numbers := map[string]string{}
	for _, text := range scripts {
		for _, c := range constant.FindAllStringSubmatch(text, -1) {
			numbers[c[1]] = powers.Replace(c[2])
		}
	}
	name := regexp.MustCompile(`[a-z]+_[a-z_]+`)
	return func(text string) string {
		return name.ReplaceAllStringFunc(text, func(word string) string {
			if number := numbers[word]; number != "" {
				return number
			}
			return word
		})
	}
}

// tableOf writes the table of a script's comment under the heads given, "a | b".
func tableOf(script, heads string, numbers func(string) string) (string, error) {
	rows := commentRows(script)
	if len(rows) == 0 {
		return "", errors.New("no such file, or no comment in it with lines of a word, two spaces and its meaning")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|---|---|\n", heads)
	for _, row := range rows {
		word, meaning := row.word, strings.ReplaceAll(cell(numbers(row.meaning)), "<", `\<`)
		if word == "" {
			word, meaning = strings.TrimSuffix(meaning, ":")+":", ""
		} else {
			word = "`" + cell(word) + "`"
		}
		fmt.Fprintf(&b, "| %s |\n", strings.TrimSpace(word+" | "+meaning))
	}
	return b.String(), nil
}

// tableRow is a word and its meaning; without a word, it is a line above the next ones.
type tableRow struct{ word, meaning string }

// commentRows reads the first comment that has any.
func commentRows(script string) []tableRow {
	var rows []tableRow
	between := ""
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		switch row, on := commentRow.FindStringSubmatch(line), commentOn.FindStringSubmatch(line); {
		case !strings.HasPrefix(line, "--"):
			if len(rows) > 0 {
				return rows
			}
			between = ""
		case row != nil:
			if len(rows) > 0 && between != "" {
				rows = append(rows, tableRow{meaning: between})
			}
			between = ""
			rows = append(rows, tableRow{word: row[1], meaning: row[2]})
		case on != nil && len(rows) > 0 && between == "":
			rows[len(rows)-1].meaning += " " + on[1]
		case len(rows) > 0:
			between = strings.TrimSpace(between + " " + strings.TrimSpace(strings.TrimPrefix(line, "--")))
		}
	}
	return rows
}
