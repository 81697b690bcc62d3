package compose

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-go/berth/pkg/scriptkit"
)

// Header is what a script's leading comment declares.
type Header struct {
	// Summary says what the script does, in one sentence.
	Summary string
	// Keys are the keys, in order.
	Keys []Param
	// Several says that the keys may be there several times, for a name each.
	Several bool
	// Args are the arguments, in order, without the group.
	Args []Param
	// Group is a group of arguments that may be there any number of times,
	// behind Args. Empty for none.
	Group []Param
	// GroupStart is the index in ARGV of the first group's first argument, from
	// 1. It is 0 without a group.
	GroupStart int
	// Returns are the replies, in the order of the header.
	Returns []scriptkit.Return
	// Replay says what the same call answers when it runs again.
	Replay string
	// Cost says how the work grows.
	Cost string
}

// Param is one key or argument of a script.
type Param struct {
	// Name is what it is: "line", "claim id".
	Name string
	// Note is what the header says in parentheses, or "": a key's content, an
	// argument's unit.
	Note string
	// Type is the type of a key as TYPE answers it, "hash" or "zset", and "" for
	// an argument.
	Type string
	// Also is a second type that a key may have, "" for none: the header names it behind
	// a semicolon.
	Also string
}

var (
	titleLine  = regexp.MustCompile(`^([a-z0-9_]+): (\S.*)$`)
	itemBreak  = regexp.MustCompile(`\s{2,}(?:KEYS\[|ARGV\[|RETURNS |REPLAY |COST )`)
	remark     = regexp.MustCompile(`(^|\s)--\s.*$`)
	paramItem  = regexp.MustCompile(`^(KEYS|ARGV)\[(\d+)\] (\S.*)$`)
	groupItem  = regexp.MustCompile(`^(KEYS|ARGV)\[(\d+)\.\.\.\] x(\d+): (\S.*)$`)
	textItem   = regexp.MustCompile(`^(RETURNS|REPLAY|COST) (\S.*)$`)
	innerParam = regexp.MustCompile(`(KEYS|ARGV)\[\d+(\.\.\.)?\]`)
	returnText = regexp.MustCompile(`^plain ([a-z]+)$`)
	returnItem = regexp.MustCompile(`^\{"([a-z][a-z0-9_]*)"((?:, ?[A-Za-z][A-Za-z0-9_]*)*)(, ?\.\.\.)?\}$`)
)

var keyTypes = []string{"hash", "list", "set", "stream", "string", "zset"}

// parseHeader reads the comment that opens the script called name.
func parseHeader(name, comment string) (Header, error) {
	text, ok := strings.CutPrefix(comment, "--[[")
	if !ok {
		return Header{}, errors.New("the file does not begin with a header, --[[ ... ]]")
	}
	items := headerItems(strings.TrimSuffix(text, "]]"))
	if len(items) == 0 {
		return Header{}, errors.New("the header is empty")
	}
	title := titleLine.FindStringSubmatch(items[0])
	if title == nil || title[1] != name {
		return Header{}, fmt.Errorf(`the header's first line is not "%s: what it does" but %q`, name, items[0])
	}
	h := Header{Summary: title[2]}
	for _, item := range items[1:] {
		if err := h.add(item); err != nil {
			return Header{}, err
		}
	}
	return h, h.complete()
}

// headerItems cuts a header into its items: the title, and whatever begins with
// one of the capital words at the start of a line or after two spaces. Other
// lines continue the item before.
func headerItems(text string) []string {
	var items []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if strings.Contains(line, "--") { // seldom, and the pattern is dear
			line = remark.ReplaceAllString(line, "")
		}
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		for _, part := range cutItems(line) {
			part = strings.Join(strings.Fields(part), " ")
			if len(items) == 0 || startsItem(part) {
				items = append(items, part)
			} else {
				items[len(items)-1] += " " + part
			}
		}
	}
	return items
}

func cutItems(line string) []string {
	var parts []string
	start := 0
	for _, at := range itemBreak.FindAllStringIndex(line, -1) {
		parts = append(parts, line[start:at[0]])
		start = at[0]
	}
	return append(parts, line[start:])
}

func startsItem(part string) bool {
	for _, word := range []string{"RETURNS", "REPLAY", "COST"} {
		if part == word || strings.HasPrefix(part, word+" ") {
			return true
		}
	}
	return strings.HasPrefix(part, "KEYS[") || strings.HasPrefix(part, "ARGV[")
}

// add reads one item into h.
func (h *Header) add(item string) error {
	if m := textItem.FindStringSubmatch(item); m != nil {
		return h.addText(m[1], m[2])
	}
	if m := groupItem.FindStringSubmatch(item); m != nil {
		if m[1] == "KEYS" {
			return h.addKeys(m[2], m[3], m[4])
		}
		return h.addGroup(m[2], m[3], m[4])
	}
	m := paramItem.FindStringSubmatch(item)
	if m == nil {
		return fmt.Errorf("the header's %q cannot be read", item)
	}
	if innerParam.MatchString(m[3]) {
		return fmt.Errorf("the header's %q needs two spaces before its second param", item)
	}
	return h.addParam(m[1], m[2], parseParam(m[3]))
}

func (h *Header) addParam(table, index string, p Param) error {
	params := &h.Args
	if table == "KEYS" {
		if h.Several {
			return fmt.Errorf("the header's KEYS[%s] is behind those of several names", index)
		}
		params = &h.Keys
		word, _, _ := strings.Cut(p.Note, " ")
		p.Type = strings.ToLower(word)
		if _, also, found := strings.Cut(p.Note, "; "); found {
			word, _, _ := strings.Cut(also, " ")
			p.Also = strings.ToLower(word)
			if word != strings.ToUpper(word) || !slices.Contains(keyTypes, p.Also) {
				return fmt.Errorf("the header's KEYS[%s] does not name a type behind its semicolon", index)
			}
		}
		if word != strings.ToUpper(word) || !slices.Contains(keyTypes, p.Type) {
			return fmt.Errorf("the header's KEYS[%s] does not name its type first in parentheses, like (HASH ...)", index)
		}
	}
	if index != strconv.Itoa(len(*params)+1) {
		return fmt.Errorf("the header's %s[%s] should be %s[%d]", table, index, table, len(*params)+1)
	}
	*params = append(*params, p)
	return nil
}

func (h *Header) addText(word, text string) error {
	switch {
	case word == "REPLAY" && h.Replay == "":
		h.Replay = text
	case word == "COST" && h.Cost == "":
		h.Cost = text
	case word == "RETURNS" && h.Returns == nil:
		return h.addReturns(text)
	default:
		return fmt.Errorf("the header has %s twice", word)
	}
	return nil
}

func (h *Header) addReturns(text string) error {
	for alternative := range strings.SplitSeq(text, "|") {
		if m := returnText.FindStringSubmatch(strings.TrimSpace(alternative)); m != nil {
			h.Returns = append(h.Returns, scriptkit.Return{Status: scriptkit.Plain, Fields: m[1:]})
			continue
		}
		m := returnItem.FindStringSubmatch(strings.TrimSpace(alternative))
		if m == nil {
			return fmt.Errorf(`the header's RETURNS has %q instead of {"status", field, ...}`, strings.TrimSpace(alternative))
		}
		if slices.ContainsFunc(h.Returns, func(r scriptkit.Return) bool { return r.Status == m[1] }) {
			return fmt.Errorf("the header's RETURNS has %q twice", m[1])
		}
		r := scriptkit.Return{Status: m[1], Repeats: m[3] != ""}
		for field := range strings.SplitSeq(m[2], ",") {
			if field = strings.TrimSpace(field); field != "" {
				r.Fields = append(r.Fields, field)
			}
		}
		if r.Repeats && len(r.Fields) == 0 {
			return fmt.Errorf("the header's RETURNS repeats nothing after %q", r.Status)
		}
		h.Returns = append(h.Returns, r)
	}
	return nil
}

func (h *Header) addGroup(start, size, names string) error {
	if h.GroupStart != 0 {
		return errors.New("the header has two groups")
	}
	for _, name := range splitNames(names) {
		h.Group = append(h.Group, parseParam(name))
	}
	if size != strconv.Itoa(len(h.Group)) {
		return fmt.Errorf("the header's ARGV[%s...] says x%s and names %d", start, size, len(h.Group))
	}
	h.GroupStart, _ = strconv.Atoi(start) // the pattern lets only digits through
	return nil
}

// addKeys reads the keys of a script that takes those of several names.
func (h *Header) addKeys(start, size, names string) error {
	if start != "1" || len(h.Keys) > 0 {
		return fmt.Errorf("the header's KEYS[%s...] are not all its keys", start)
	}
	for i, name := range splitNames(names) {
		if err := h.addParam("KEYS", strconv.Itoa(i+1), parseParam(name)); err != nil {
			return err
		}
	}
	if size != strconv.Itoa(len(h.Keys)) {
		return fmt.Errorf("the header's KEYS[1...] says x%s and names %d", size, len(h.Keys))
	}
	h.Several = true
	return nil
}

// complete refuses a header that lacks something.
func (h *Header) complete() error {
	switch {
	case h.GroupStart != 0 && h.GroupStart != len(h.Args)+1:
		return fmt.Errorf("the header's ARGV[%d...] should be ARGV[%d...]", h.GroupStart, len(h.Args)+1)
	case h.Returns == nil:
		return errors.New("the header has no RETURNS")
	case h.Replay == "":
		return errors.New("the header has no REPLAY")
	case h.Cost == "":
		return errors.New("the header has no COST")
	}
	return nil
}

// parseParam splits "lease (ms)" into name and note. Text that only contains
// parentheses, "wait (1) or try (0)", is a name as a whole.
func parseParam(text string) Param {
	name, note, ok := strings.Cut(text, " (")
	if !ok || closing(note) != len(note)-1 {
		return Param{Name: text}
	}
	return Param{Name: name, Note: note[:len(note)-1]}
}

// closing is the index of the parenthesis that closes one before s, -1 for none.
func closing(s string) int {
	depth := 1
	for i, c := range s {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

// splitNames splits at the commas that stand outside of parentheses.
func splitNames(text string) []string {
	var names []string
	depth, start := 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			names = append(names, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	return append(names, strings.TrimSpace(text[start:]))
}
