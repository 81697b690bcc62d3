package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode"
)

var (
	fence      = regexp.MustCompile("(?ms)^[ \t]*(```+|~~~+).*?^[ \t]*(```+|~~~+)[ \t]*$")
	comment    = regexp.MustCompile(`(?s)<!--.*?-->`)
	inlineCode = regexp.MustCompile("`[^`\n]+`")
	inlineLink = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)`)
	namedLink  = regexp.MustCompile(`(?m)^\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?\s*$`)
	heading    = regexp.MustCompile(`(?m)^#{1,6}[ \t]+(.+?)[ \t]*#*$`)
	anchor     = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// checkLinks follows every relative link of every document to a file that is
// there, and to a heading in it.
func checkLinks(tree fs.FS) error {
	var problems []error
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && skipped(name) {
			return fs.SkipDir
		}
		if entry.IsDir() || path.Ext(name) != ".md" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		for _, target := range links(string(text)) {
			if err := follow(tree, name, target); err != nil {
				problems = append(problems, fmt.Errorf("%s: the link to %s: %w", name, target, err))
			}
		}
		return nil
	})
	return errors.Join(append(problems, err)...)
}

// skipped says that a folder holds nothing of the project.
func skipped(dir string) bool {
	base := path.Base(dir)
	return dir != "." && strings.HasPrefix(base, ".") || base == "bin" || base == "testdata"
}

// links returns the targets of a document's links, as they are written.
func links(text string) []string {
	text = comment.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
	text = inlineCode.ReplaceAllString(text, "")
	var targets []string
	for _, pattern := range []*regexp.Regexp{inlineLink, namedLink} {
		for _, match := range pattern.FindAllStringSubmatch(text, -1) {
			targets = append(targets, match[1])
		}
	}
	return targets
}

func follow(tree fs.FS, from, target string) error {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return nil
	}
	file, fragment, _ := strings.Cut(target, "#")
	to := from
	if file != "" {
		to = path.Join(path.Dir(from), file)
	}
	if !fs.ValidPath(to) {
		return errors.New("leads out of the repository")
	}
	if _, err := fs.Stat(tree, to); err != nil {
		return errors.New("no such file")
	}
	if fragment == "" || path.Ext(to) != ".md" {
		return nil
	}
	text, err := fs.ReadFile(tree, to)
	if err != nil {
		return err
	}
	if !anchors(string(text))[fragment] {
		return fmt.Errorf("no heading #%s in %s", fragment, to)
	}
	return nil
}

// anchors returns what a link can lead to in a document, as GitHub names it.
func anchors(text string) map[string]bool {
	text = fence.ReplaceAllString(text, "")
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		name := slug(match[1])
		unique := name
		for n := 1; found[unique]; n++ {
			unique = fmt.Sprintf("%s-%d", name, n)
		}
		found[unique] = true
	}
	for _, match := range anchor.FindAllStringSubmatch(text, -1) {
		found[match[1]] = true
	}
	return found
}

func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, linkText.ReplaceAllString(heading, "$1"))
}
