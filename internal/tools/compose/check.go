package compose

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-go/berth/pkg/scriptkit"
)

// facts are what a piece of code shows, whatever it is composed with: most pieces
// are part of many scripts, and are read once.
type facts struct {
	keys, args usage
	returns    outcome            // what its returns come to
	tables     map[string]outcome // by variable, the first elements of the tables that it is set to
	lines      map[string]outcome // by variable, the words on the lines that set it
	calls      []redisCall        // in the order of the code
}

// read recognises what the comments below say. It reads tokens, not syntax, so write
// scripts in that way.
func read(tokens []token) *facts {
	f := &facts{tables: make(map[string]outcome), lines: make(map[string]outcome)}
	for i, t := range tokens {
		switch {
		case t.kind != kindName:
		case t.text == "KEYS":
			f.keys.read(tokens, i)
		case t.text == "ARGV":
			f.args.read(tokens, i)
		case t.text == "return":
			f.returns.addReturn(tokens, i+1)
		case at(tokens, i+1).is("="):
			f.readSet(tokens, i)
		}
		f.readCall(tokens, i)
	}
	return f
}

// checkBody holds a composed body to its header.
func checkBody(h *Header, pieces []*facts) error {
	return errors.Join(
		checkKeys(h, pieces),
		checkArgs(h, pieces),
		checkStatuses(h, pieces),
	)
}

// usage is how a body uses KEYS or ARGV.
type usage struct {
	literal map[int]bool // KEYS[1]; nil for none
	from    int          // unpack(KEYS, 2) uses this one and all behind it; 0 for none
	dynamic bool         // KEYS[i]
}

// uses reports whether index n is certainly used.
func (u *usage) uses(n int) bool {
	return u.literal[n] || u.from > 0 && n >= u.from
}

func (u *usage) use(n int) {
	if u.literal == nil {
		u.literal = make(map[int]bool)
	}
	u.literal[n] = true
}

func (u *usage) useFrom(n int) {
	if u.from == 0 || n < u.from {
		u.from = n
	}
}

// together is the usage of a body, of one of its tables.
func together(pieces []*facts, table func(*facts) *usage) *usage {
	all := &usage{}
	for _, f := range pieces {
		u := table(f)
		for n := range u.literal {
			all.use(n)
		}
		if u.from != 0 {
			all.useFrom(u.from)
		}
		all.dynamic = all.dynamic || u.dynamic
	}
	return all
}

// read reads the table that stands at i: table[1], table[i], #table,
// unpack(table, 2), unpack(table, 2, 5), and table as a value, which uses all of it.
func (u *usage) read(tokens []token, i int) {
	unpacks := at(tokens, i-2).is("unpack") && at(tokens, i+1).is(",")
	switch next := at(tokens, i+2); {
	case at(tokens, i+1).is("[") && next.kind == kindNumber && at(tokens, i+3).is("]"):
		u.use(number(next))
	case at(tokens, i+1).is("["):
		u.dynamic = true
	case at(tokens, i-1).is("#"):
	case unpacks && next.kind == kindNumber:
		u.unpacked(number(next), at(tokens, i+3), at(tokens, i+4))
	case unpacks:
		u.dynamic = true
	default:
		u.useFrom(1)
	}
}

// unpacked notes unpack(table, first) or unpack(table, first, last).
func (u *usage) unpacked(first int, comma, last token) {
	switch {
	case !comma.is(","):
		u.useFrom(first)
	case last.kind == kindNumber:
		for n := first; n <= number(last); n++ {
			u.use(n)
		}
	default:
		u.dynamic = true
	}
}

func checkKeys(h *Header, pieces []*facts) error {
	u := together(pieces, func(f *facts) *usage { return &f.keys })
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

func checkArgs(h *Header, pieces []*facts) error {
	u := together(pieces, func(f *facts) *usage { return &f.args })
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

func checkStatuses(h *Header, pieces []*facts) error {
	found := findStatuses(pieces)
	var problems []error
	for _, r := range h.Returns {
		if !found[r.Status] && r.Status != scriptkit.Plain { // a text has no status that could be found
			problems = append(problems, fmt.Errorf("RETURNS has %q, which the body does not return", r.Status))
		}
		delete(found, r.Status)
	}
	for _, status := range slices.Sorted(maps.Keys(found)) {
		problems = append(problems, fmt.Errorf("the body returns %q, which RETURNS does not have", status))
	}
	return errors.Join(problems...)
}

// outcome is what an expression can come to, as far as statuses go.
type outcome struct {
	words    []string
	elements []string // variables, for the words that their lines set them to
	tables   []string // variables, for the tables that they are set to
}

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
func findStatuses(pieces []*facts) map[string]bool {
	found := make(map[string]bool)
	add := func(o outcome) {
		for _, word := range o.words {
			found[word] = true
		}
		for _, name := range o.elements {
			for _, f := range pieces {
				for _, word := range f.lines[name].words {
					found[word] = true
				}
			}
		}
	}
	for _, f := range pieces {
		add(f.returns)
		for _, name := range f.returns.tables {
			for _, other := range pieces {
				add(other.tables[name])
			}
		}
	}
	return found
}

// addReturn reads the returned expression that begins at i.
func (o *outcome) addReturn(tokens []token, i int) {
	if name := at(tokens, i); name.kind == kindName && endsReturn(at(tokens, i+1)) {
		o.tables = append(o.tables, name.text)
		return
	}
	for depth := 0; i < len(tokens); i++ {
		t := tokens[i]
		if depth == 0 && (endsReturn(t) || t.is("function")) {
			return
		}
		if depth == 0 && t.is("{") {
			o.addFirst(tokens, i+1)
		}
		depth += nesting(t)
	}
}

// addFirst reads a table's first element, which begins at i: a string, an
// expression of strings, or a variable.
func (o *outcome) addFirst(tokens []token, i int) {
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
	if size == 1 && tokens[i].kind == kindName {
		o.elements = append(o.elements, tokens[i].text)
		return
	}
	o.addWords(tokens[min(i, len(tokens)):min(i+size, len(tokens))])
}

// readSet reads what stands behind the variable at i and its =.
func (f *facts) readSet(tokens []token, i int) {
	name := tokens[i].text
	if at(tokens, i+2).is("{") {
		o := f.tables[name]
		o.addFirst(tokens, i+3)
		f.tables[name] = o
	}
	end := i + 2
	for end < len(tokens) && tokens[end].line == tokens[i+1].line {
		end++
	}
	o := f.lines[name]
	o.addWords(tokens[i+2 : end])
	f.lines[name] = o
}

// addWords collects what an expression can come to: its strings, but for those
// compared, joined, or passed to something.
func (o *outcome) addWords(expression []token) {
	part := func(t token) bool { return t.is("==") || t.is("~=") || t.is("..") }
	depth := 0
	for i, t := range expression {
		if t.kind == kindText && depth == 0 && isStatus(t.text) && !part(at(expression, i-1)) && !part(at(expression, i+1)) {
			o.words = append(o.words, t.text)
		}
		depth += nesting(t)
	}
}

// isStatus reports whether s may be a status word: a small letter, then small letters,
// digits and underscores.
func isStatus(s string) bool {
	return s != "" && s[0] >= 'a' && s[0] <= 'z' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// nesting is how much deeper in brackets the source is behind t.
func nesting(t token) int {
	if t.kind == kindSymbol {
		switch t.text {
		case "{", "(", "[":
			return 1
		case "}", ")", "]":
			return -1
		}
	}
	return 0
}

// endsReturn reports whether t ends the block that a return closes.
func endsReturn(t token) bool {
	return t == (token{}) || t.is("end") || t.is("else") || t.is("elseif") || t.is("until") || t.is(";")
}

// redisCall is one thing that code does with redis.call or redis.pcall, or might with a
// local name of it.
type redisCall struct {
	what    callKind
	by      string // the local name, or the member of redis
	command token  // the first argument
}

type callKind int

const (
	callDirect callKind = iota // redis.call(command)
	callNamed                  // by(command), whatever by may be
	callLocal                  // by = redis.call
	callStray                  // any other redis.call
)

// readCall notes what is called at i.
func (f *facts) readCall(tokens []token, i int) {
	t, next := tokens[i], at(tokens, i+1)
	if t.kind != kindName {
		return
	}
	first := func(i int) token { // of the arguments, where those begin at i
		if t := at(tokens, i); !t.is("(") && !t.is(",") {
			return t
		}
		return at(tokens, i+1)
	}
	member := at(tokens, i+2)
	if t.text != "redis" || !next.is(".") || !member.is("call") && !member.is("pcall") {
		if next.is("(") || next.kind == kindText {
			f.calls = append(f.calls, redisCall{callNamed, t.text, first(i + 1)})
		}
		return
	}
	switch behind, name := at(tokens, i+3), at(tokens, i-2); {
	case behind.is("(") || behind.kind == kindText || behind.is(","):
		f.calls = append(f.calls, redisCall{callDirect, member.text, first(i + 3)})
	case name.kind == kindName && at(tokens, i-1).is("="):
		f.calls = append(f.calls, redisCall{what: callLocal, by: name.text})
	default:
		f.calls = append(f.calls, redisCall{what: callStray, by: member.text})
	}
}

// findCommands returns the commands that redis.call and redis.pcall are given.
// It also follows local call = redis.call. A command must be a plain string.
func findCommands(pieces []*facts) ([]string, error) {
	callers := make(map[string]bool)
	commands := make(map[string]bool)
	for _, f := range pieces {
		for _, c := range f.calls {
			switch {
			case c.what == callStray:
				return nil, errors.New("redis." + c.by + " is neither called nor given a local name")
			case c.what == callLocal:
				callers[c.by] = true
			case c.what == callNamed && !callers[c.by]:
			case c.command.kind != kindText:
				return nil, fmt.Errorf("a Redis command is given as %q instead of a plain string", c.command.text)
			default:
				commands[strings.ToUpper(c.command.text)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(commands)), nil
}

// at returns the token at index i, and an empty one outside.
func at(tokens []token, i int) token {
	if i < 0 || i >= len(tokens) {
		return token{}
	}
	return tokens[i]
}

// number returns the value of a whole number, and -1 for any other.
func number(t token) int {
	n, err := strconv.Atoi(t.text)
	if err != nil {
		return -1
	}
	return n
}
