package scriptkit

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

var includeComment = regexp.MustCompile(`^---[ \t]*@include[ \t]+"([^"]+)"[ \t]*$`)

// findIncludes returns the paths that a file includes, in order. A comment that
// only looks like an include is refused: it would be missing silently.
func findIncludes(text string, tokens []token) ([]string, error) {
	var includes []string
	for _, t := range tokens {
		if t.kind != kindComment || !strings.HasPrefix(strings.TrimLeft(t.text, "-[= \t\n"), "@include") {
			continue
		}
		m := includeComment.FindStringSubmatch(t.text)
		lineStart := strings.LastIndexByte(text[:t.start], '\n') + 1
		if m == nil || strings.TrimSpace(text[lineStart:t.start]) != "" {
			return nil, fmt.Errorf(`line %d: an include is written --- @include "lib/name" on a line of its own`, t.line)
		}
		includes = append(includes, m[1]+".lua")
	}
	return includes, nil
}

// checkInclude holds a lib file to its shape: a comment, then one local function
// that is called like the file.
func (s *source) checkInclude() error {
	if s.header == "" {
		return errors.New("the file does not begin with a comment")
	}
	name := strings.TrimSuffix(path.Base(s.path), ".lua")
	for i := range len(s.tokens) - 2 {
		t := s.tokens[i:]
		if t[0].is("local") && t[1].is("function") && t[2].is(name) {
			return nil
		}
	}
	return fmt.Errorf("the file does not hold local function %s", name)
}

// composer puts a script together: what it includes, depth first and each file
// once, then the script itself.
type composer struct {
	sources map[string]*source
	done    map[string]bool
	text    strings.Builder
	tokens  []token
}

// add appends what s includes, then s. The trail holds the files that led here.
func (c *composer) add(s *source, trail []string) error {
	trail = append(trail, s.path)
	for _, include := range s.includes {
		if slices.Contains(trail, include) {
			return fmt.Errorf("circular include: %s -> %s", strings.Join(trail, " -> "), include)
		}
		if c.done[include] {
			continue
		}
		next := c.sources[include]
		if next == nil || !strings.HasPrefix(include, "lib/") {
			return fmt.Errorf("%s includes %q, which is no file of lib", s.path, include)
		}
		if err := c.add(next, trail); err != nil {
			return err
		}
	}
	c.done[s.path] = true
	c.text.WriteString(s.body)
	c.tokens = append(c.tokens, s.tokens...)
	return nil
}
