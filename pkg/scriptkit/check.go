package scriptkit

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// checkBody holds a composed body to its header. It reads tokens, not syntax:
// what it recognises is in the comments below, so write scripts in that way.
func checkBody(h *Header, tokens []token) error {
	return errors.Join(
		checkKeys(h, tokens),
		checkArgs(h, tokens),
		checkStatuses(h, tokens),
	)
}

// usage is how a body uses KEYS or ARGV.
type usage struct {
	literal map[int]bool // KEYS[1]
	from    int          // unpack(KEYS, 2) uses this one and all behind it; 0 for none
	dynamic bool         // KEYS[i]
}

// uses reports whether index n is certainly used.
func (u *usage) uses(n int) bool {
	return u.literal[n] || u.from > 0 && n >= u.from
}

// findUsage recognises table[1], table[i], #table, unpack(table, 2),
// unpack(table, 2, 5), and table as a value, which uses all of it.
func findUsage(table string, tokens []token) *usage {
	u := &usage{literal: make(map[int]bool)}
	for i, t := range tokens {
		if t.kind != kindName || t.text != table {
			continue
		}
		before, after := peek(tokens, i-2, 2), peek(tokens, i+1, 4)
		switch {
		case after[0].is("[") && after[1].kind == kindNumber && after[2].is("]"):
			u.literal[number(after[1])] = true
		case after[0].is("["):
			u.dynamic = true
		case before[1].is("#"):
		case before[0].is("unpack") && after[0].is(",") && after[1].kind == kindNumber:
			u.unpacked(number(after[1]), after[2], after[3])
		case before[0].is("unpack") && after[0].is(","):
			u.dynamic = true
		default:
			u.from = 1
		}
	}
	return u
}

// unpacked notes unpack(table, first) or unpack(table, first, last).
func (u *usage) unpacked(first int, comma, last token) {
	switch {
	case !comma.is(","):
		if u.from == 0 || first < u.from {
			u.from = first
		}
	case last.kind == kindNumber:
		for n := first; n <= number(last); n++ {
			u.literal[n] = true
		}
	default:
		u.dynamic = true
	}
}

func checkKeys(h *Header, tokens []token) error {
	u := findUsage("KEYS", tokens)
	var problems []error
	for _, n := range slices.Sorted(maps.Keys(u.literal)) {
		if n < 1 || n > len(h.Keys) {
			problems = append(problems, fmt.Errorf("the body uses KEYS[%d], which the header does not declare", n))
		}
	}
	for i, key := range h.Keys {
		if !u.uses(i+1) && !u.dynamic {
			problems = append(problems, fmt.Errorf("the body does not use KEYS[%d] (%s)", i+1, key.Name))
		}
	}
	return errors.Join(problems...)
}

func checkArgs(h *Header, tokens []token) error {
	u := findUsage("ARGV", tokens)
	var problems []error
	for _, n := range slices.Sorted(maps.Keys(u.literal)) {
		if n < 1 || n > len(h.Args) && h.GroupStart == 0 {
			problems = append(problems, fmt.Errorf("the body uses ARGV[%d], which the header does not declare", n))
		}
	}
	for i, arg := range h.Args {
		if !u.uses(i + 1) {
			problems = append(problems, fmt.Errorf("the body does not use ARGV[%d] (%s)", i+1, arg.Name))
		}
	}
	// A group has no fixed end, so it is read by a counted index or by unpack.
	switch beyond := u.dynamic || u.from > len(h.Args); {
	case beyond && h.GroupStart == 0:
		problems = append(problems, errors.New("the body counts through ARGV, and the header declares no group"))
	case !beyond && u.from == 0 && h.GroupStart != 0:
		problems = append(problems, fmt.Errorf("the body does not use the group from ARGV[%d] on", h.GroupStart))
	}
	return errors.Join(problems...)
}

func checkStatuses(h *Header, tokens []token) error {
	found := findStatuses(tokens)
	var problems []error
	for _, r := range h.Returns {
		if !found[r.Status] {
			problems = append(problems, fmt.Errorf("RETURNS has %q, which the body does not return", r.Status))
		}
		delete(found, r.Status)
	}
	for _, status := range slices.Sorted(maps.Keys(found)) {
		problems = append(problems, fmt.Errorf("the body returns %q, which RETURNS does not have", status))
	}
	return errors.Join(problems...)
}

var statusWord = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// findStatuses returns the status words of a body: the first element of every
// table that a return names outside of a call,
//
//	return {"granted", fence}
//	return {fits and "ahead" or "full", held}
//	return full and {"full", held} or {"queued", ahead}
//	local reply = {"listed", more} ... return reply
//
// and, where that element is a variable, the words that its line can set it to:
//
//	local status = full and "full" or "queued" ... return {status, held}
func findStatuses(tokens []token) map[string]bool {
	found := make(map[string]bool)
	for i, t := range tokens {
		if t.is("return") {
			statusesOf(tokens, i+1, found)
		}
	}
	return found
}

// statusesOf reads the expression that begins at i.
func statusesOf(tokens []token, i int, found map[string]bool) {
	if name := peek(tokens, i, 2); name[0].kind == kindName && endsReturn(name[1]) {
		for j := range tokens {
			if t := peek(tokens, j, 3); t[0].is(name[0].text) && t[1].is("=") && t[2].is("{") {
				statusOf(tokens, j+3, found)
			}
		}
		return
	}
	for depth := 0; i < len(tokens); i++ {
		t := tokens[i]
		if depth == 0 && (endsReturn(t) || t.is("function")) {
			return
		}
		if depth == 0 && t.is("{") {
			statusOf(tokens, i+1, found)
		}
		depth += nesting(t)
	}
}

// statusOf reads a table's first element, which begins at i: a string, an
// expression of strings, or a variable.
func statusOf(tokens []token, i int, found map[string]bool) {
	size := 0 // of the expression, in tokens
	for depth := 0; i+size < len(tokens); size++ {
		t := tokens[i+size]
		if t.is("=") && depth == 0 {
			return // a field with a name: no reply of ours
		}
		if (t.is(",") || t.is("}")) && depth == 0 {
			break
		}
		depth += nesting(t)
	}
	element := peek(tokens, i, size)
	if size != 1 || element[0].kind != kindName {
		words(element, found)
		return
	}
	for j := range tokens {
		if t := peek(tokens, j, 2); t[0].is(element[0].text) && t[1].is("=") {
			end := j + 2
			for end < len(tokens) && tokens[end].line == t[1].line {
				end++
			}
			words(tokens[j+2:end], found)
		}
	}
}

// words collects what an expression can come to: its strings, but for those
// compared, joined, or passed to something.
func words(expression []token, found map[string]bool) {
	part := func(t token) bool { return t.is("==") || t.is("~=") || t.is("..") }
	depth := 0
	for i, t := range expression {
		around := peek(expression, i-1, 3)
		if t.kind == kindText && depth == 0 && statusWord.MatchString(t.text) && !part(around[0]) && !part(around[2]) {
			found[t.text] = true
		}
		depth += nesting(t)
	}
}

// nesting is how much deeper in brackets the source is behind t.
func nesting(t token) int {
	switch {
	case t.is("{") || t.is("(") || t.is("["):
		return 1
	case t.is("}") || t.is(")") || t.is("]"):
		return -1
	}
	return 0
}

// endsReturn reports whether t ends the block that a return closes.
func endsReturn(t token) bool {
	return t == (token{}) || t.is("end") || t.is("else") || t.is("elseif") || t.is("until") || t.is(";")
}

// findCommands returns the commands that redis.call and redis.pcall are given.
// It also follows local call = redis.call. A command must be a plain string.
func findCommands(tokens []token) ([]string, error) {
	callers := make(map[string]bool)
	commands := make(map[string]bool)
	for i := range tokens {
		t := peek(tokens, i, 5)
		direct := t[0].is("redis") && t[1].is(".") && (t[2].is("call") || t[2].is("pcall"))
		switch before := peek(tokens, i-2, 2); {
		case direct && (t[3].is("(") || t[3].kind == kindText || t[3].is(",")):
			t = t[3:]
		case direct && before[0].kind == kindName && before[1].is("="):
			callers[before[0].text] = true
			continue
		case direct:
			return nil, errors.New("redis." + t[2].text + " is neither called nor given a local name")
		case t[0].kind == kindName && callers[t[0].text] && (t[1].is("(") || t[1].kind == kindText):
			t = t[1:]
		default:
			continue
		}
		if t[0].is("(") || t[0].is(",") {
			t = t[1:]
		}
		if t[0].kind != kindText {
			return nil, fmt.Errorf("a Redis command is given as %q instead of a plain string", t[0].text)
		}
		commands[strings.ToUpper(t[0].text)] = true
	}
	return slices.Sorted(maps.Keys(commands)), nil
}

// peek returns n tokens from index i on; those outside are empty.
func peek(tokens []token, i, n int) []token {
	if i >= 0 && i+n <= len(tokens) {
		return tokens[i : i+n]
	}
	out := make([]token, n)
	for j := range out {
		if k := i + j; k >= 0 && k < len(tokens) {
			out[j] = tokens[k]
		}
	}
	return out
}

// number returns the value of a whole number, and -1 for any other.
func number(t token) int {
	n, err := strconv.Atoi(t.text)
	if err != nil {
		return -1
	}
	return n
}
