package scriptkit

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var includeComment = regexp.MustCompile(`^---[ \t]*@include[ \t]+"([^"]+)"[ \t]*$`)

// piece is code, and the file that is included behind it.
type piece struct {
	facts   *facts
	body    string // the code, without comments
	include string // its path, "" at the end of the file
}

// cut takes a file apart at its includes; code are its tokens without the comments. A
// comment that only looks like an include is refused: it would be missing silently.
func cut(text string, tokens, code []token) ([]piece, error) {
	var pieces []piece
	from, to := 0, 0 // of the piece, in code
	for _, t := range tokens {
		if t.kind != kindComment {
			to++
			continue
		}
		if !strings.HasPrefix(strings.TrimLeft(t.text, "-[= \t\n"), "@include") {
			continue
		}
		m := includeComment.FindStringSubmatch(t.text)
		lineStart := strings.LastIndexByte(text[:t.start], '\n') + 1
		if m == nil || strings.TrimSpace(text[lineStart:t.start]) != "" {
			return nil, fmt.Errorf(`line %d: an include is written --- @include "lib/name" on a line of its own`, t.line)
		}
		pieces = append(pieces, newPiece(text, code[from:to], m[1]+".lua"))
		from = to
	}
	return append(pieces, newPiece(text, code[from:], "")), nil
}

func newPiece(text string, code []token, include string) piece {
	return piece{facts: read(code), body: strip(text, code), include: include}
}

// checkInclude holds a lib file to its shape: a comment, then one local function
// that is called like the file.
func (s *source) checkInclude() error {
	if s.header == "" {
		return errors.New("the file does not begin with a comment")
	}
	name := nameOf(s.path)
	for i := range len(s.code) - 2 {
		t := s.code[i:]
		if t[0].is("local") && t[1].is("function") && t[2].is(name) {
			return nil
		}
	}
	return fmt.Errorf("the file does not hold local function %s", name)
}

// composer puts a script together: each file that it includes stands where it is
// first included, once.
type composer struct {
	find   func(path string) (*source, error) // nil for a file that is not there
	done   map[string]bool
	bodies []string
	facts  []*facts
}

// add appends s with what it includes. The trail holds the files that led here.
func (c *composer) add(s *source, trail []string) error {
	trail = append(trail, s.path)
	for _, p := range s.pieces {
		c.bodies = append(c.bodies, p.body)
		c.facts = append(c.facts, p.facts)
		if p.include == "" || c.done[p.include] {
			continue
		}
		if slices.Contains(trail, p.include) {
			return fmt.Errorf("circular include: %s -> %s", strings.Join(trail, " -> "), p.include)
		}
		next, err := c.find(p.include)
		if err != nil {
			return err
		}
		if next == nil || !strings.HasPrefix(p.include, "lib/") {
			return fmt.Errorf("%s includes %q, which is no file of lib", s.path, p.include)
		}
		if err := c.add(next, trail); err != nil {
			return err
		}
		c.done[p.include] = true
	}
	return nil
}
