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

// A script, a fragment and a Go package are named by words of the glossary, the section
// "Words" of docs/architecture.md, or by these plain terms of the field.
var plainTerms = termsOf(
	// What every lock, lease and queue has done to it.
	"acquire admit reenter reentered expire extend force notify renew renewal replay requeue resize resume wait",
	// What is done to records.
	"add audit batch bind check clear compose composed count expect fetch forget inspect load lookup note open pick publish",
	"agree recount refresh remove replace reply save set settle swap take touch",
	// What is stored or told.
	"binding deadline expiry feature int number score semaphore target text wire",
	// What time and order say of it.
	"dead due earliest first leave live next now outdated remaining",
	// What programs and their tests have; and this one.
	"allocator amount app backup berth caller clock command demo embedded engine failover fast golden harness heartbeat history job lag link lock model observe pace pool shape top",
	"apptest begin end guard mutate once origin probe report row script sem server supervise view web",
	"berthcron berthgocron berthhttp berthotel berthprom exporter leader measure metrics zaplog",
	// What one folder alone means by a word: its package comment explains it.
	"act ask beat console fatten free gate group holding item least look mark member patrol reader slim sooner state watch",
	// What proves a system of many machines, and what compares it with others.
	"browser checker chrome conformance contender integration jam rolling torture",
)

func termsOf(lists ...string) map[string]bool {
	terms := map[string]bool{}
	for _, word := range strings.Fields(strings.Join(lists, " ")) {
		terms[word] = true
	}
	return terms
}

var (
	wordsSection = regexp.MustCompile(`(?ms)^## Words$(.*?)(?:^## |\z)`)
	aside        = regexp.MustCompile(`\([^)]*\)`)
)

// glossary returns the words that the glossary explains: those in the first cells of its
// tables, without hyphens; what stands there in brackets explains one.
func glossary(document string) map[string]bool {
	words := map[string]bool{}
	for line := range strings.Lines(wordsSection.FindString(document)) {
		cells := cellsOf(line)
		if len(cells) != 2 || cells[0] == "word" || strings.Trim(cells[0], "-") == "" {
			continue
		}
		for word := range strings.SplitSeq(aside.ReplaceAllString(cells[0], ""), ",") {
			words[strings.ToLower(strings.NewReplacer("-", "", "`", "").Replace(strings.TrimSpace(word)))] = true
		}
	}
	return words
}

// checkWords says which files of scripts and which Go packages are named by a word that
// nobody explains.
func checkWords(tree fs.FS, document string) error {
	text, err := fs.ReadFile(tree, document)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // told already
	}
	if err != nil {
		return err
	}
	used, err := namingWords(tree)
	if err != nil {
		return err
	}
	var problems []error
	known := glossary(string(text))
	for _, word := range slices.Sorted(maps.Keys(used)) {
		one := strings.TrimSuffix(word, "s")
		if !known[word] && !known[one] && !plainTerms[word] && !plainTerms[one] {
			problems = append(problems, fmt.Errorf("%s: the word %s is neither in the glossary of %s nor a plain term of words.go",
				used[word], word, document))
		}
	}
	return errors.Join(problems...)
}

// namingWords returns the words of the names of scripts and packages, each with a name that
// has it.
func namingWords(tree fs.FS) (map[string]string, error) {
	used := map[string]string{}
	scripts, err := readScripts(tree)
	if err != nil {
		return nil, err
	}
	for _, file := range slices.Sorted(maps.Keys(scripts)) {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "scripts/"), path.Ext(file))
		for _, word := range strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '_' }) {
			used[word] = file
		}
	}
	names, err := readNames(tree)
	if err != nil {
		return nil, err
	}
	for name := range names.packages {
		used[name] = "package " + name
	}
	return used, nil
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
