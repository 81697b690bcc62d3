package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// keyTable is where the names of all Redis keys are listed.
const keyTable = "pkg/keyspace/doc.go"

// stored are the texts that scripts store, send and answer, each with the script whose
// comment describes it, and the heads of its table.
var stored = []struct{ title, script, heads string }{
	{"The fields of a state", "state/save", "field | meaning"},
	{"A thin name", "state/thin", "word | meaning"},
	{"The values of a fat name", "state/values", "word | meaning"},
	{"The pauses of a name", "state/pause", "word | meaning"},
	{"A claim's record", "state/record", "part | meaning"},
	{"The line", "state/score", "member | score"},
	{"The group of a lock's owner", "owner/group", "part | meaning"},
	{"The counts of a pool", "pool/counts", "count | meaning"},
	{"A resource of a pool", "pool/item", "part | meaning"},
	{"A binding of a pool", "pool/binding", "part | meaning"},
	{"What a claim wants of a pool", "pool/wants", "part | meaning"},
	{"The nodes of a swarm, by time", "swarm/open", "member | score"},
	{"A node of a swarm", "swarm/member", "part | meaning"},
	{"What is known of runs", "once/open", "field | meaning"},
	{"A run", "once/run", "part | meaning"},
	{"A notice", "notice_set", "word | meaning"},
	{"A message", "wake/wake", "word | its fields behind the name"},
	{"A reply", "line/reply", "field | meaning"},
	{"The answer to a renewal", "line/renew", "word | meaning"},
}

// A table is made of the first comment of a script that has lines like
//
//	--   fence  the number of its grant,
//	--          0 while it waits
//	-- Then only a pool's claim has:
//	--   wants  what it asks for
//
// What stands between two groups of them becomes a line of the table, and what stands
// before and after them a text around it. Numbers that the scripts have names for stand in
// the place of those names.
var (
	commentRow = regexp.MustCompile(`^--   (\S.*?) {2,}(\S.*)$`)
	commentOn  = regexp.MustCompile(`^--    +(\S.*)$`)
	keyRow     = regexp.MustCompile(`(?m)^//\t(\S+) {2,}(\S.*?) {2,}(\S.*)$`)
	constant   = regexp.MustCompile(`(?m)^local ([a-z]+_[a-z_]+) = ([0-9]+(?: [*+-] [0-9]+)*)`)
	powers     = strings.NewReplacer("1000000000000000", "10^15", "10000000000000", "10^13", "9999999999999", "10^13 - 1", "9007199254740991", "2^53 - 1")
)

// keysPage has all that is stored: the Redis keys, and the texts in them.
func keysPage(tree fs.FS) (page, error) {
	p := page{name: "keys", title: "What is stored"}
	doc, err := fs.ReadFile(tree, keyTable)
	if err != nil {
		return p, err
	}
	scripts, err := readScripts(tree)
	if err != nil {
		return p, err
	}
	var b strings.Builder
	b.WriteString("## Redis keys\n\n| key or channel | type | what |\n|---|---|---|\n")
	rows := keyRow.FindAllStringSubmatch(string(doc), -1)
	for _, row := range rows {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", row[1], row[2], row[3])
	}
	var problems []error
	if len(rows) == 0 {
		problems = append(problems, fmt.Errorf("%s has no lines of a key, its type and what it is", keyTable))
	}
	numbers := constants(scripts)
	for _, s := range stored {
		text, err := describe(scripts["scripts/"+s.script+".lua"], s.heads, numbers)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", s.script, err))
		}
		fmt.Fprintf(&b, "\n## %s\n\nFrom `scripts/%s.lua`. %s", s.title, s.script, text)
	}
	p.text = b.String()
	return p, errors.Join(problems...)
}

// readScripts returns the text of all scripts by their paths.
func readScripts(tree fs.FS) (map[string]string, error) {
	scripts := map[string]string{}
	err := fs.WalkDir(tree, "scripts", func(name string, entry fs.DirEntry, err error) error {
		if name == composed {
			return fs.SkipDir
		}
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

// describe writes what the comment of a script says as a table under the heads given, "a | b",
// with the text around it.
func describe(script, heads string, numbers func(string) string) (string, error) {
	before, rows, after := commentRows(script)
	if len(rows) == 0 {
		return "", errors.New("no such file, or no comment in it with lines of a word, two spaces and its meaning")
	}
	plain := func(text string) string { return strings.ReplaceAll(numbers(text), "<", `\<`) }
	var b strings.Builder
	if before != "" {
		fmt.Fprintf(&b, "%s:\n\n", plain(strings.TrimRight(before, ":.")))
	}
	fmt.Fprintf(&b, "| %s |\n|---|---|\n", heads)
	for _, row := range rows {
		word, meaning := row.word, plain(cell(row.meaning))
		if word == "" {
			word, meaning = strings.TrimSuffix(meaning, ":")+":", ""
		} else {
			word = "`" + cell(word) + "`"
		}
		fmt.Fprintf(&b, "| %s |\n", strings.TrimSpace(word+" | "+meaning))
	}
	if after != "" {
		fmt.Fprintf(&b, "\n%s\n", plain(after))
	}
	return b.String(), nil
}

// tableRow is a word and its meaning; without a word, it is a line above the next ones.
type tableRow struct{ word, meaning string }

// commentRows reads the first comment that has any, and the text around them.
func commentRows(script string) (before string, rows []tableRow, after string) {
	text := "" // since the last row
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		switch row, on := commentRow.FindStringSubmatch(line), commentOn.FindStringSubmatch(line); {
		case !strings.HasPrefix(line, "--") || strings.HasPrefix(line, "---"):
			if len(rows) > 0 {
				return before, rows, text
			}
			text = ""
		case row != nil:
			if len(rows) == 0 {
				before = text
			} else if text != "" {
				rows = append(rows, tableRow{meaning: text})
			}
			text = ""
			rows = append(rows, tableRow{word: row[1], meaning: row[2]})
		case on != nil && len(rows) > 0 && text == "":
			rows[len(rows)-1].meaning += " " + on[1]
		default:
			text = strings.TrimSpace(text + " " + strings.TrimSpace(strings.TrimPrefix(line, "--")))
		}
	}
	return before, rows, text
}
