package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// sentenceWords is how many words a sentence may have; code between backquotes is one.
const sentenceWords = 40

var (
	// start is how no sentence begins: its reader has to wait for its subject.
	start = regexp.MustCompile(`^[*_"(\[]*(What|Who|Whose|Whom|Whoever|That which)\b`)
	// avoided are the words for which English has a plainer one.
	avoided = regexp.MustCompile(`(?i)\b(but for|anew|whoever|whomever|whosoever|thereby|hereby|wherein|whereof|thereof|therein|` +
		`(?:is|are|was|were) to be|lest|amongst|whilst|upon|in order to|of its own accord|in any case|hears? of|heard of|` +
		`(?:something|nothing) else than|is no more|in the way in which|and such|yet to come|not any more|for want of|in vain)\b`)
	// sentenceEnd is followed by the next sentence, in the same paragraph.
	sentenceEnd = regexp.MustCompile("[.!?][)\"*_]*\\s+[A-Z`*\\[(\"]")
	quoted      = regexp.MustCompile("`[^`]*`")
	target      = regexp.MustCompile(`\]\([^)]*\)`)
	block       = regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```")
	item        = regexp.MustCompile(`^\s*([-*]|\d+\.)\s+`)
)

// unread are the files whose sentences are not looked at: somebody else's, and those of changes that are past.
var unread = []string{"CHANGELOG.md", "CODE_OF_CONDUCT.md"}

// later are the folders of which only the pages are looked at, until their comments are rewritten.
var later = []string{"internal", "pkg/inspect", "pkg/scriptkit", "scripts", "test"}

// checkProse says which sentences of the docs, and of the comments of Go files that are no tests, a reader has to read
// twice. Headings, tables and code are free, and so are questions.
func checkProse(tree fs.FS) error {
	var problems []error
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if skipped(name) || name == generated || entry.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		read := paragraphsOfPage
		switch {
		case path.Ext(name) == ".md" && !slices.Contains(unread, name):
		case path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && !slices.ContainsFunc(later, func(folder string) bool {
			return strings.HasPrefix(name, folder+"/")
		}):
			read = paragraphsOfSource
		default:
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		paragraphs, err := read(string(text))
		for _, paragraph := range paragraphs {
			for _, sentence := range sentencesOf(paragraph) {
				if problem := twice(sentence); problem != "" {
					problems = append(problems, fmt.Errorf("%s: %s: %s", name, problem, sentence))
				}
			}
		}
		return err
	})
	return errors.Join(append(problems, err)...)
}

// twice says why a sentence has to be read twice, "" if not.
func twice(sentence string) string {
	if found := start.FindStringSubmatch(sentence); found != nil && !strings.HasSuffix(strings.TrimRight(sentence, `*_)"`), "?") {
		return fmt.Sprintf("a sentence that begins with %q; begin with its subject", found[1])
	}
	plain := target.ReplaceAllString(quoted.ReplaceAllString(sentence, "x"), "]")
	if n := len(strings.Fields(plain)); n > sentenceWords {
		return fmt.Sprintf("a sentence of %d words, more than %d", n, sentenceWords)
	}
	if found := avoided.FindString(plain); found != "" {
		return fmt.Sprintf("%q; take a plainer word", found)
	}
	return ""
}

// sentencesOf splits a paragraph.
func sentencesOf(paragraph string) []string {
	var sentences []string
	rest := strings.Join(strings.Fields(paragraph), " ")
	for {
		found := sentenceEnd.FindStringIndex(rest)
		if found == nil {
			break
		}
		sentences = append(sentences, strings.TrimSpace(rest[:found[1]-1]))
		rest = rest[found[1]-1:]
	}
	if rest != "" {
		sentences = append(sentences, rest)
	}
	return sentences
}

// paragraphsOfPage returns those of Markdown; each item of a list is one.
func paragraphsOfPage(text string) ([]string, error) {
	var lines lines
	for line := range strings.Lines(block.ReplaceAllString(text, "\n")) {
		switch {
		case strings.HasPrefix(line, "#"), strings.HasPrefix(line, "|"), strings.HasPrefix(line, "<"), strings.HasPrefix(line, "[!"):
			lines.end()
		default:
			lines.add(line)
		}
	}
	return lines.all(), nil
}

// paragraphsOfSource returns those of all comments of a Go file.
func paragraphsOfSource(text string) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return nil, err
	}
	var lines lines
	for _, group := range file.Comments {
		for _, comment := range group.List {
			text, is := strings.CutPrefix(comment.Text, "//")
			switch {
			case !is, strings.HasPrefix(text, "go:"), strings.HasPrefix(text, "nolint"), strings.HasPrefix(text, "\t"),
				strings.HasPrefix(text, " #"), strings.HasPrefix(strings.TrimSpace(text), "|"):
				lines.end()
			default:
				lines.add(text)
			}
		}
		lines.end()
	}
	return lines.all(), nil
}

// lines joins those of a paragraph.
type lines struct {
	done []string
	open []string
}

// add takes a line: an empty one ends the paragraph, and the first of an item begins one.
func (l *lines) add(line string) {
	if text := item.ReplaceAllString(line, ""); text != line || strings.TrimSpace(line) == "" {
		l.end()
		line = text
	}
	l.open = append(l.open, line)
}

func (l *lines) end() {
	if text := strings.TrimSpace(strings.Join(l.open, " ")); text != "" {
		l.done = append(l.done, text)
	}
	l.open = nil
}

func (l *lines) all() []string {
	l.end()
	return l.done
}
