package compose

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-go/berth/scripts"
)

var includeComment = regexp.MustCompile(`^---[ \t]*@include[ \t]+"([^"]+)"[ \t]*$`)

// piece is a part of a file: an include, a definition, or, in a script, the code
// before the next include.
type piece struct {
	include  string          // the path of the included file, "" for code
	defines  string          // the name, "" for an include and for a script's own code
	value    string          // what may stand in the place of that name, "" for a definition that must be made
	file     string          // the path of the file that the piece is a part of
	body     string          // the code, without comments
	function bool            // whether it is that of a function
	formula  *formula        // of a function that only returns one, else nil
	blocks   []block         // of a function and of a script's own code
	names    []name          // what the code takes from outside, in order
	declared map[string]bool // the code's own names; in a script, also those of the code before
	facts    *facts
}

// cut takes a file apart at its includes. A comment that only looks like an include is
// refused, because the script would silently lack the file. The tokens are not kept.
func (s *source) cut(text string, tokens []token) error {
	code := tokens[:0] // before the next include, written over the tokens that were read
	var own scope
	for _, t := range tokens {
		if t.kind != kindComment {
			code = append(code, t)
			continue
		}
		if !strings.HasPrefix(strings.TrimLeft(t.text, "-[= \t\n"), "@include") {
			continue
		}
		m := includeComment.FindStringSubmatch(t.text)
		lineStart := strings.LastIndexByte(text[:t.start], '\n') + 1
		if m == nil || strings.TrimSpace(text[lineStart:t.start]) != "" {
			return fmt.Errorf(`line %d: an include is written --- @include "folder/name" on a line of its own`, t.line)
		}
		if err := s.addCode(text, code, &own); err != nil {
			return err
		}
		if own.inBlock() {
			return fmt.Errorf("line %d: an include must not stand in a block", t.line)
		}
		s.pieces = append(s.pieces, &piece{include: m[1] + ".lua", file: s.path})
		code = code[:0]
	}
	return s.addCode(text, code, &own)
}

// addCode appends the code: as a whole in a script, definition by definition in a file
// that scripts include. Own is the scope of the script.
func (s *source) addCode(text string, code []token, own *scope) error {
	if isScript(s.path) {
		s.addPiece(text, "", code, own)
		return nil
	}
	for len(code) > 0 {
		first := code[0]
		name, size := definition(code)
		switch {
		case name == "":
			line, _, _ := strings.Cut(text[first.start:], "\n")
			return fmt.Errorf("line %d: %q is no definition: besides comments and includes, a file in a folder holds only local function name(...) ... end and local name = value", first.line, line)
		case size < 0:
			return fmt.Errorf("line %d: the definition of %s cannot be read up to its end", first.line, name)
		}
		s.addPiece(text, name, code[:size], &scope{})
		code = code[size:]
	}
	return nil
}

func (s *source) addPiece(text, defines string, code []token, own *scope) {
	body, starts := strip(text, code)
	own.read(code)
	p := &piece{
		defines: defines, file: s.path, body: body,
		names: own.names, declared: maps.Clone(own.declared), facts: read(code),
	}
	from := 0 // the token with which the code begins that runs
	switch {
	case defines == "":
	case code[1].is("function"):
		p.function, from = true, closed(code, 3, nesting)
		p.formula = readFormula(code, starts)
	case len(code) == 4 && isIdentifier(code[3]):
		p.value = code[3].text
	case isLiteral(code[3:]):
		p.value = "(" + strings.TrimSpace(body[starts[3]:]) + ")"
	}
	p.stands(code, starts, from)
	s.pieces = append(s.pieces, p)
}

// checkInclude holds a file that scripts include to its shape.
func (s *source) checkInclude() error {
	if s.header == "" {
		return errors.New("the file does not begin with a comment")
	}
	if !slices.ContainsFunc(s.pieces, func(p *piece) bool { return p.defines != "" }) {
		return errors.New("the file defines nothing")
	}
	return nil
}

// uses reports whether the file names what another file defines.
func (s *source) uses(defined string) bool {
	return slices.ContainsFunc(s.pieces, func(p *piece) bool {
		return p.include == "" && slices.ContainsFunc(p.names, func(n name) bool { return n.text == defined })
	})
}

// composer puts a script together. The script works as if all definitions stood before its
// own code, in the order of the files, by where each is first included. But it gets only
// those that it needs, and makes each as late as it can: each function that is made costs
// the server time, whenever the script runs.
//
//   - A literal value stands in the place of its name, and so does another name.
//   - What a function returns that does nothing else stands in the place of its calls, see formula. Where that
//     writes a whole number that is known, the text stands there.
//   - A function stands in the function, the part of the script and there in the branch of an if
//     that have in them all that need it, before the first statement that does.
//   - What is left stands right before the first part of the script that needs it.
//
// No definition moves to where a name that it takes from outside means something else.
type composer struct {
	sources map[string]*source // all there are, by path, nil for one whose problem is known
	files   map[string]*source // those that take part, by path
	members []*member          // their code, in order
	defined map[string]*member // by name
}

// member is a piece of code as a part of one script.
type member struct {
	*piece
	order   int
	value   string    // as the piece's, but never the name of a value
	kept    bool      // whether the script needs it
	stands  []string  // for each of the piece's names, what stands in its place, "" for a formula
	named   []*member // for each of them, the definition that is made for it, or whose formula stands there, nil for none
	takes   []string  // the names that the member has from outside in the script
	needs   []need    // definitions that have to be made for it
	needed  bool      // whether a member behind it needs it; then host is known
	host    *spot     // where it stands in another member, nil for before a part of the script
	makes   []*member // what stands in this member, in order
	due     bool      // whether it has to stand before a part of the script that is written
	written bool
}

// need is a definition that has to be made, and from where on it has to be seen.
type need struct {
	*member
	from *spot
}

// joined is a script that is put together.
type joined struct {
	text  string
	files []string // it is made of, sorted
}

// compose puts a script together. It also returns what is in it, in order.
func compose(s *source, sources map[string]*source) (result joined, found []*facts, err error) {
	c := composer{sources: sources, files: make(map[string]*source), defined: make(map[string]*member)}
	for _, hook := range scripts.Hooks {
		c.defined[hook] = &member{piece: &piece{defines: hook}, order: undefined, value: "(false)"}
	}
	if err := c.add(s, nil); err != nil {
		return result, nil, err
	}
	for _, m := range c.members {
		if m.defines == "" {
			if err := c.keep(m); err != nil {
				return result, nil, err
			}
		}
	}
	c.settle()
	size := 0 // about that of the script
	for _, m := range c.members {
		if m.kept {
			found = append(found, m.facts)
			size += len(m.body)
		}
	}
	var b strings.Builder
	b.Grow(size)
	for _, m := range c.members {
		if m.defines == "" {
			c.writeDefinitions(&b, m)
			m.write(&b)
		}
	}
	return joined{b.String(), slices.Sorted(maps.Keys(c.files))}, found, c.checkUses(s)
}

// undefined is the order of a hook that no file has defined.
const undefined = -1

// isHook reports whether a name is one that a kind brings.
func isHook(name string) bool { return strings.HasPrefix(name, "kind_") }

// add appends the code of s and of what s includes. The trail holds the files that led
// here.
func (c *composer) add(s *source, trail []string) error {
	c.files[s.path] = s
	trail = append(trail, s.path)
	for _, p := range s.pieces {
		if p.include != "" {
			if err := c.include(p, trail); err != nil {
				return err
			}
			continue
		}
		m := &member{piece: p, order: len(c.members), value: p.value}
		if d := c.defined[p.value]; d != nil && d.value != "" {
			m.value = d.value
		}
		if p.defines != "" {
			other := c.defined[p.defines]
			if other == nil && isHook(p.defines) && !slices.Contains(scripts.Needed, p.defines) {
				return fmt.Errorf("%s defines %s, which nothing asks of a kind: see scripts.Hooks", p.file, p.defines)
			}
			if other != nil && other.order != undefined {
				return fmt.Errorf("%s is defined twice, in %s and in %s", p.defines, other.file, p.file)
			}
			c.defined[p.defines] = m
		}
		c.members = append(c.members, m)
	}
	return nil
}

func (c *composer) include(p *piece, trail []string) error {
	switch {
	case slices.Contains(trail, p.include):
		return fmt.Errorf("circular include: %s -> %s", strings.Join(trail, " -> "), p.include)
	case c.files[p.include] != nil:
		return nil
	case isScript(p.include):
		return fmt.Errorf("%s includes %q, which is in no folder", p.file, p.include)
	}
	switch next, known := c.sources[p.include]; {
	case !known:
		return fmt.Errorf("%s includes %q, which does not exist", p.file, p.include)
	case next == nil:
		return errKnown
	default:
		return c.add(next, trail)
	}
}

// isMade reports whether m is a definition that the script makes.
func (m *member) isMade() bool { return m.defines != "" && m.needed && m.value == "" }

// keep keeps a member and the definitions that it needs.
func (c *composer) keep(m *member) error {
	if m.kept {
		return nil
	}
	m.kept = true
	m.stands, m.named = make([]string, len(m.names)), make([]*member, len(m.names))
	for i, n := range m.names {
		d := c.defined[n.text]
		if d == nil && isHook(n.text) {
			return fmt.Errorf("%s names %s, which no file defines: see scripts.Hooks", m.file, n.text)
		}
		if d == nil {
			m.stands[i], m.takes = n.text, append(m.takes, n.text)
			continue
		}
		switch literal := strings.HasPrefix(d.value, "("); {
		case d.order >= m.order:
			return fmt.Errorf("%s names %s before %s defines it", m.file, n.text, d.file)
		case n.set:
			return fmt.Errorf("%s sets %s, which %s defines", m.file, n.text, d.file)
		case literal && n.begins:
			return fmt.Errorf("%s begins a statement with %s, which is a value in %s", m.file, n.text, d.file)
		case m.declared[d.value]:
			return fmt.Errorf("%s declares %s, and names %s, which is another name for it in %s", m.file, d.value, n.text, d.file)
		}
		if err := c.keep(d); err != nil {
			return err
		}
		text := n.text
		if d.value != "" {
			text, d = d.value, c.defined[d.value]
		}
		m.take(i, text, d)
	}
	return nil
}

// take notes what stands in the place of the name at index i: a text, which may be the name of d.
func (m *member) take(i int, text string, d *member) {
	n := m.names[i]
	switch {
	case strings.HasPrefix(text, "("):
	case d != nil && d.function && n.truth:
		text = "(true)"
	case d != nil && n.value && n.call != nil && d.standsFor(n.call) && !m.captures(d):
		text, m.named[i], m.takes = "", d, append(m.takes, d.takes...)
	default:
		m.takes = append(m.takes, text)
		if d != nil {
			m.named[i] = d
			m.require(d, n.stand)
		}
	}
	m.stands[i] = text
}

// require notes that m needs d where a name stands.
func (m *member) require(d *member, where stand) {
	from := &spot{m, where}
	if i := slices.IndexFunc(m.needs, func(n need) bool { return n.member == d }); i >= 0 {
		m.needs[i].from = common(m.needs[i].from, from)
		return
	}
	m.needs = append(m.needs, need{d, from})
}

// settle finds where each definition stands: in the innermost block that has in it all that
// need the definition, or as far outside of it as the definition's names need.
func (c *composer) settle() {
	for _, m := range slices.Backward(c.members) { // who needs a definition stands behind it
		if !m.isMade() && m.defines != "" {
			continue
		}
		once := m.defines != "" && !m.function // made before a part of the script, and what it needs too
		if once {
			m.host = nil
		}
		for h := m.host; h != nil; h = h.in.host {
			if h.in.captures(m) {
				m.host = h.in.host
			}
		}
		for _, d := range m.needs {
			switch {
			case once:
				d.host = nil
			case d.needed:
				d.host = common(d.host, d.from)
			default:
				d.host = d.from
			}
			d.needed = true
		}
	}
	for _, m := range c.members {
		if m.host != nil {
			m.host.in.makes = append(m.host.in.makes, m)
		}
	}
	for _, m := range c.members {
		slices.SortStableFunc(m.makes, func(a, b *member) int { return a.host.at - b.host.at })
	}
}

// captures reports whether a name that other takes from outside is one that m declares:
// other cannot stand in m then, or behind it.
func (m *member) captures(other *member) bool {
	return slices.ContainsFunc(other.takes, func(name string) bool { return m.declared[name] })
}

// writeDefinitions writes those definitions that have to stand before a part of the
// script: that the part needs, or that could not stand behind it.
func (c *composer) writeDefinitions(b *strings.Builder, part *member) {
	part.need()
	for _, m := range c.members {
		if !m.isMade() || m.due || !part.captures(m) {
			continue
		}
		for m.need(); m.host != nil; m.need() {
			m = m.host.in
		}
	}
	for _, m := range c.members {
		if m.isMade() && m.due && m.host == nil && !m.written {
			m.write(b)
		}
	}
}

// need makes due a member and the definitions that it needs.
func (m *member) need() {
	if m.due {
		return
	}
	m.due = true
	for _, d := range m.needs {
		d.need()
	}
}

// write writes a member, with the functions that stand in it, and with values in the place
// of their names.
func (m *member) write(b *strings.Builder) {
	m.written = true
	from := 0
	for made := 0; made < len(m.makes); {
		at := m.makes[made].host.at
		end := len(strings.TrimRight(m.body[:at], " \t\n")) // definitions are on lines of their own
		b.WriteString(m.text(from, end, nil))
		if at > 0 {
			b.WriteByte('\n')
		}
		for ; made < len(m.makes) && m.makes[made].host.at == at; made++ {
			m.makes[made].write(b)
		}
		from = end
		if m.body[from] == '\n' {
			from++
		}
	}
	b.WriteString(m.text(from, len(m.body), nil))
}

// checkUses refuses the include of a file that is not used. A file uses what it names.
// The script may also include a file for another file that names it.
func (c *composer) checkUses(root *source) error {
	var problems []error
	for _, path := range slices.Sorted(maps.Keys(c.files)) {
		s := c.files[path]
		if s.checked {
			continue
		}
		used := func(p *piece) bool {
			if s == root {
				return p.defines != "" && c.defined[p.defines].kept
			}
			return p.defines != "" && s.uses(p.defines)
		}
		s.checked = true
		for _, p := range s.pieces {
			if p.include != "" && !slices.ContainsFunc(c.files[p.include].pieces, used) {
				problems = append(problems, fmt.Errorf("%s includes %q and uses nothing of it", path, p.include))
				s.checked = false
			}
		}
	}
	return errors.Join(problems...)
}
