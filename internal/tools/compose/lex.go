package compose

import (
	"fmt"
	"strings"
)

// kind is the kind of a Lua token.
type kind int

const (
	kindName    kind = iota // an identifier or keyword
	kindNumber              // a numeral
	kindText                // a string; its token's text has no quotes
	kindSymbol              // an operator or a bracket
	kindComment             // a comment; its token's text is the whole of it
)

// token is one token of Lua source.
type token struct {
	kind       kind
	text       string
	start, end int // the bytes of the source that it covers
	line       int // from 1
}

// is reports whether t is the given name or symbol.
func (t token) is(text string) bool {
	return (t.kind == kindName || t.kind == kindSymbol) && t.text == text
}

// lexer cuts Lua 5.1 source into tokens. It knows just enough to tell code from
// strings and comments, which no regular expression does.
type lexer struct {
	src  string
	pos  int
	line int
}

// lex returns the tokens of src, comments included.
func lex(src string) ([]token, error) {
	l := &lexer{src: src, line: 1}
	tokens := make([]token, 0, len(src)/4+1) // more than most files have
	for l.space(); l.pos < len(src); l.space() {
		t := token{start: l.pos, line: l.line}
		if err := l.next(&t); err != nil {
			return nil, fmt.Errorf("line %d: %w", t.line, err)
		}
		t.end = l.pos
		l.line += strings.Count(src[t.start:t.end], "\n")
		tokens = append(tokens, t)
	}
	return tokens, nil
}

func (l *lexer) space() {
	for l.pos < len(l.src) && strings.IndexByte(" \t\r\n\f\v", l.src[l.pos]) >= 0 {
		if l.src[l.pos] == '\n' {
			l.line++
		}
		l.pos++
	}
}

// next reads the token at l.pos into t and moves behind it.
func (l *lexer) next(t *token) error {
	rest := l.src[l.pos:]
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "--"):
		return l.comment(t)
	case c == '"' || c == '\'':
		return l.quoted(t, c)
	case longOpen(rest) > 0:
		t.kind = kindText
		text, err := l.long("string")
		t.text = text
		return err
	case isDigit(c) || c == '.' && len(rest) > 1 && isDigit(rest[1]):
		t.kind, t.text = kindNumber, l.take(func(c byte) bool { return isWord(c) || c == '.' })
	case isWord(c):
		t.kind, t.text = kindName, l.take(isWord)
	default:
		t.kind, t.text = kindSymbol, symbol(rest)
		l.pos += len(t.text)
	}
	return nil
}

func (l *lexer) comment(t *token) error {
	t.kind = kindComment
	if longOpen(l.src[l.pos+2:]) > 0 {
		l.pos += 2
		if _, err := l.long("comment"); err != nil {
			return err
		}
	} else {
		l.take(func(c byte) bool { return c != '\n' })
	}
	t.text = l.src[t.start:l.pos]
	return nil
}

func (l *lexer) quoted(t *token, quote byte) error {
	t.kind = kindText
	for i := l.pos + 1; i < len(l.src) && l.src[i] != '\n'; i++ {
		switch l.src[i] {
		case '\\':
			i++ // whatever is escaped, a quote and a newline too, is no end
		case quote:
			t.text = l.src[l.pos+1 : i]
			l.pos = i + 1
			return nil
		}
	}
	return fmt.Errorf("a string has no end")
}

// long reads a long bracket, [[...]] or [==[...]==], and returns what is inside.
func (l *lexer) long(what string) (string, error) {
	size := longOpen(l.src[l.pos:])
	closing := "]" + strings.Repeat("=", size-2) + "]"
	body := l.src[l.pos+size:]
	end := strings.Index(body, closing)
	if end < 0 {
		return "", fmt.Errorf("a long %s has no end", what)
	}
	l.pos += size + end + len(closing)
	return body[:end], nil
}

// take moves over the bytes that belong and returns them.
func (l *lexer) take(belongs func(c byte) bool) string {
	start := l.pos
	for l.pos < len(l.src) && belongs(l.src[l.pos]) {
		l.pos++
	}
	return l.src[start:l.pos]
}

// longOpen returns the length of the long bracket that opens s, 0 for none.
func longOpen(s string) int {
	if !strings.HasPrefix(s, "[") {
		return 0
	}
	level := len(s[1:]) - len(strings.TrimLeft(s[1:], "="))
	if !strings.HasPrefix(s[1+level:], "[") {
		return 0
	}
	return level + 2
}

func symbol(s string) string {
	for _, long := range []string{"...", "..", "==", "~=", "<=", ">="} {
		if strings.HasPrefix(s, long) {
			return long
		}
	}
	return s[:1]
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// strip returns src without its comments and blank lines. Strings stay as they
// are, and tokens stay apart and on lines of their own where they were: Lua
// reads a call's parenthesis differently after a line's end. It also returns where in
// that text each token begins.
func strip(src string, tokens []token) (text string, starts []int) {
	var b strings.Builder
	if len(tokens) > 0 {
		b.Grow(tokens[len(tokens)-1].end - tokens[0].start + 1)
	}
	end := 0 // of the last token kept
	starts = make([]int, len(tokens))
	for i, t := range tokens {
		if t.kind == kindComment {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(gap(src[end:t.start]))
		}
		starts[i] = b.Len()
		b.WriteString(src[t.start:t.end])
		end = t.end
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	return b.String(), starts
}

// gap is what remains of the spaces and comments between two tokens.
func gap(between string) string {
	if i := strings.LastIndexByte(between, '\n'); i >= 0 {
		indent := between[i+1:]
		return "\n" + indent[:len(indent)-len(strings.TrimLeft(indent, " \t"))]
	}
	if between != "" {
		return " "
	}
	return ""
}
