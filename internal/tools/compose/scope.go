package compose

import "slices"

// name is a name that code takes from outside: a definition's, or one that Lua or the
// server provides.
type name struct {
	text   string
	at     int  // where it stands: among the tokens, and in a piece, in its body
	set    bool // name = value
	begins bool // a statement behind what an opening parenthesis would call
	stand  stand
	call   *calling // nil for a name that is not called
	value  bool     // it stands in an expression
	truth  bool     // only whether it is false or nil matters
}

// scope tells the names that code takes from outside from those of its own: its
// parameters and local variables. It may read code part by part.
type scope struct {
	declared map[string]bool // the code's own names, wherever they are visible
	visible  []string        // those that are visible, the innermost last
	open     []opened        // brackets and blocks
	coming   []coming        // what is known to happen, the next one last
	names    []name          // taken from outside, by the part that was read last
}

// opened is a bracket or a block that is open.
type opened struct {
	by      string // the token
	visible int    // how many names were visible before it
}

// coming is what happens at a later token: names become visible behind the statement or
// the "do" that declares them, and the block of a repeat ends behind its condition. In
// code that cannot be read it happens at once.
type coming struct {
	at    int
	names []token
	ends  bool
}

// read reads the next part of the code.
func (s *scope) read(code []token) {
	s.names = make([]name, 0, len(code)/4) // about as many as most code has
	for i := 0; i < len(code); i++ {
		s.reach(i)
		t := code[i]
		if t.kind != kindName && nesting(t) == 0 {
			continue
		}
		switch {
		case t.is("local") && at(code, i+1).is("function"):
			s.declare(at(code, i+2))
		case t.is("local"):
			names, next := declaredNames(code, i+1)
			s.coming = append(s.coming, coming{at: behindValues(code, next), names: names})
			i = next - 1
		case t.is("for"):
			names, next := declaredNames(code, i+1) // next is = or in
			s.coming = append(s.coming, coming{at: expressions(code, next+1) + 1, names: names})
			i = next
		case t.is("until"):
			s.coming = append(s.coming, coming{at: expression(code, i+1), ends: true})
		case t.is("function"):
			i = s.function(code, i)
		case t.is("else") || t.is("elseif"):
			s.end()
			s.begin("else")
		case nesting(t)+blocks(t) > 0:
			s.begin(t.text)
		case nesting(t)+blocks(t) < 0:
			s.end()
		case isIdentifier(t):
			s.name(code, i)
		}
	}
	s.reach(len(code))
}

// inBlock reports whether the code that was read ends inside a block or a statement.
func (s *scope) inBlock() bool { return len(s.open) > 0 || len(s.coming) > 0 }

func (s *scope) begin(by string) { s.open = append(s.open, opened{by, len(s.visible)}) }

func (s *scope) end() {
	if last := len(s.open) - 1; last >= 0 {
		s.visible = s.visible[:s.open[last].visible]
		s.open = s.open[:last]
	}
}

// reach does what comes up to the token at i.
func (s *scope) reach(i int) {
	for last := len(s.coming) - 1; last >= 0 && s.coming[last].at <= i; last-- {
		for _, t := range s.coming[last].names {
			s.declare(t)
		}
		if s.coming[last].ends {
			s.end()
		}
		s.coming = s.coming[:last]
	}
}

func (s *scope) declare(t token) {
	s.visible = append(s.visible, t.text)
	if s.declared == nil {
		s.declared = make(map[string]bool)
	}
	s.declared[t.text] = true
}

// function begins the function that stands at i. It returns the index of the last token
// before its block.
func (s *scope) function(code []token, i int) int {
	if i++; isIdentifier(at(code, i)) {
		s.name(code, i)
	}
	s.begin("function")
	for ; i < len(code) && !code[i].is("("); i++ {
		if code[i].is(":") {
			s.declare(token{text: "self"})
		}
	}
	for ; i < len(code) && !code[i].is(")"); i++ {
		if isIdentifier(code[i]) {
			s.declare(code[i])
		}
	}
	return i
}

// name notes the name at i if it is neither the code's own nor that of a field, as in
// state.name, state:name() and {name = 1}.
func (s *scope) name(code []token, i int) {
	before, behind := at(code, i-1), at(code, i+1)
	by := ""
	if len(s.open) > 0 {
		by = s.open[len(s.open)-1].by
	}
	switch {
	case before.is(".") || before.is(":") || behind.is("=") && by == "{":
	case slices.Contains(s.visible, code[i].text):
	default:
		s.names = append(s.names, name{
			text:   code[i].text,
			at:     i,
			set:    by != "{" && by != "(" && by != "[" && isSet(code, i),
			begins: isIdentifier(before) || before.kind == kindText || before.is("end") || nesting(before) < 0,
		})
	}
}

// isSet reports whether the name at i, which is in no brackets, is assigned to.
func isSet(code []token, i int) bool {
	if at(code, i-1).is("function") {
		return at(code, i+1).is("(")
	}
	for i++; at(code, i).is(","); {
		i = operand(code, i+1)
	}
	return at(code, i).is("=")
}

// declaredNames returns the names, with commas between them, that begin at i, and the
// index behind them.
func declaredNames(code []token, i int) (names []token, next int) {
	for isIdentifier(at(code, i)) {
		names = append(names, code[i])
		if i++; !at(code, i).is(",") {
			break
		}
		i++
	}
	return names, i
}

// behindValues returns the index behind a local statement whose names end before i.
func behindValues(code []token, i int) int {
	if at(code, i).is("=") {
		return expressions(code, i+1)
	}
	return i
}

// expressions returns the index behind the expressions, with commas between them, that
// begin at i, and -1 if there are none or they have no end.
func expressions(code []token, i int) int {
	i = expression(code, i)
	for at(code, i).is(",") {
		i = expression(code, i+1)
	}
	return i
}
