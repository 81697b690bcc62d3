package compose

import (
	"slices"
	"strings"
)

// formula is the value of a function that does nothing but return it. It may stand in the place of a call
// then: the server makes no function, and calls none.
type formula struct {
	from, to int     // where it stands in the body
	params   []param // where it names the function's parameters, in order
	times    []int   // how often it names each of them
	steady   bool    // it is reckoned of nothing but the parameters, and of all of them
	branches bool    // it has an and, or an or: parts of it may not be reckoned
}

// param is a place where a formula names a parameter.
type param struct{ at, end, index int }

// calling is a call in an expression.
type calling struct {
	end  int // behind its closing parenthesis
	args []argument
}

// argument is one of a call's.
type argument struct {
	from, to int
	kind     argumentKind
}

type argumentKind int

const (
	anyArgument   argumentKind = iota // it may call something
	pureArgument                      // it changes nothing
	plainArgument                     // a name, or a literal
)

// known are the functions that a formula may call: each has one value, and calls nothing of the script's.
var known = []string{
	"math.ceil", "math.floor", "math.max", "math.min", "redis.call", "string.format", "string.sub", "table.concat",
	"tonumber",
}

// provided are the names that a formula may take from outside.
var provided = []string{"math", "redis", "string", "table", "tonumber"}

// readFormula returns the formula of a function with this code, nil where it has none. It may still call what
// other names stand for.
func readFormula(code []token, starts []int) *formula {
	behind := closed(code, 3, nesting) // the parameters
	last := len(code) - 1
	if !at(code, behind).is("return") || expression(code, behind+1) != last {
		return nil
	}
	f := &formula{from: starts[behind+1], to: starts[last-1] + size(code[last-1]), steady: true}
	var params []string
	for _, t := range code[4 : behind-1] {
		if t.is("...") {
			return nil
		} else if isIdentifier(t) {
			params = append(params, t.text)
		}
	}
	f.times = make([]int, len(params))
	changes := false // whether it is more than a parameter, which may change before it is used
	for i := behind + 1; i < last; i++ {
		index := slices.Index(params, code[i].text)
		if !at(code, i-1).is(".") && isIdentifier(code[i]) && index >= 0 {
			f.params = append(f.params, param{starts[i], starts[i] + size(code[i]), index})
			f.times[index]++
		} else if !code[i].is("(") && !code[i].is(")") {
			changes = true
		}
		if !f.read(code, i, index) {
			return nil
		}
	}
	f.steady = f.steady && !f.branches && !slices.ContainsFunc(f.times, func(n int) bool { return n != 1 })
	if !changes {
		return nil
	}
	return f
}

// read reads a token, which may be the name of a parameter. It returns false for one that no formula has.
func (f *formula) read(code []token, i, index int) bool {
	t, next := code[i], code[i+1]
	field, calls := code[i-1].is("."), next.is("(") && endsOperand(t)
	switch {
	case t.is("function") || t.is("{") || t.is(":") || t.is("...") || next.kind == kindText && endsOperand(t):
		return false
	case t.is("and") || t.is("or"):
		f.branches = true
	case t.is("["):
		f.steady = false
	case calls && !isIdentifier(t):
		return false
	case field:
		return !calls || slices.Contains(known, code[i-2].text+"."+t.text)
	case !isIdentifier(t):
	case index >= 0:
		f.steady = f.steady && !next.is(".")
		return !calls
	case t.text == code[2].text: // it calls itself
		return false
	default:
		f.steady = f.steady && t.text != "redis" && slices.Contains(provided, t.text)
	}
	return true
}

// endsOperand reports whether an opening parenthesis or a text behind t would be the arguments of a call.
func endsOperand(t token) bool {
	return isIdentifier(t) || t.kind == kindText || t.is(")") || t.is("]")
}

// size is how many bytes a token has.
func size(t token) int { return t.end - t.start }

// readCall returns the call of the name at i, nil where that is no call.
func readCall(code []token, starts []int, i int) *calling {
	if !at(code, i+1).is("(") {
		return nil
	}
	behind := closed(code, i+1, nesting)
	if behind < 0 {
		return nil
	}
	c := &calling{end: starts[behind-1] + 1}
	for from := i + 2; from < behind-1; {
		to := expression(code, from)
		if to < 0 {
			return nil
		}
		c.args = append(c.args, argument{starts[from], starts[to-1] + size(code[to-1]), kindOf(code[from:to])})
		from = to + 1 // behind the comma
	}
	return c
}

func kindOf(arg []token) argumentKind {
	if len(arg) == 1 && !arg[0].is("...") {
		return plainArgument
	}
	for i, t := range arg {
		calls := endsOperand(t) && (at(arg, i+1).is("(") || at(arg, i+1).kind == kindText)
		if calls || t.is("{") || t.is("...") || t.is("function") {
			return anyArgument
		}
	}
	return pureArgument
}

// opens reports whether an expression begins behind t.
func opens(t token) bool {
	switch t.text {
	case "(", "[", "{", ",", "=", "return", "if", "elseif", "while", "until", "in", "not", "and", "or":
		return t.kind == kindName || t.kind == kindSymbol
	}
	return false
}

// isValue reports whether the name at i stands in an expression.
func isValue(code []token, i int) bool {
	before := at(code, i-1)
	return opens(before) || before.is("#") || before.kind == kindSymbol && slices.Contains(operators, before.text)
}

// isTruth reports whether nothing is asked of the name at i but whether it is false or nil.
func isTruth(code []token, i int) bool {
	next := at(code, i+1)
	return opens(at(code, i-1)) && (next.is("and") || next.is("then"))
}

// fits reports whether the formula, with the arguments in the place of the parameters, does what the call
// does: reckons the arguments once, and all of them before it changes or reads anything else.
func (f *formula) fits(c *calling) bool {
	if len(c.args) != len(f.times) {
		return false
	}
	least := plainArgument
	if f.steady && len(c.args) == 1 {
		least = anyArgument
	} else if f.steady {
		least = pureArgument
	}
	return !slices.ContainsFunc(c.args, func(a argument) bool { return a.kind < least })
}

// standsFor reports whether the formula of m may stand in the place of a call.
func (m *member) standsFor(c *calling) bool {
	return m.formula != nil && m.formula.fits(c) && len(m.needs) == 0 &&
		!slices.ContainsFunc(m.takes, func(name string) bool { return !slices.Contains(provided, name) })
}

// text returns a part of the member's code, as the script has it. The args stand in the place of the
// parameters of a formula.
func (m *member) text(from, to int, args []string) string {
	var b strings.Builder
	b.Grow(to - from)
	i, _ := slices.BinarySearchFunc(m.names, from, func(n name, at int) int { return n.at - at })
	for u := 0; ; {
		for i < len(m.names) && m.names[i].at < from { // in a call that has been written
			i++
		}
		for args != nil && u < len(m.formula.params) && m.formula.params[u].at < from {
			u++
		}
		at := to
		if i < len(m.names) {
			at = min(at, m.names[i].at)
		}
		isParam := args != nil && u < len(m.formula.params) && m.formula.params[u].at < at
		if isParam {
			at = m.formula.params[u].at
		}
		b.WriteString(m.body[from:at])
		switch {
		case isParam:
			b.WriteString(args[m.formula.params[u].index])
			from = m.formula.params[u].end
		case at == to:
			return b.String()
		case m.stands[i] == "":
			b.WriteString(m.named[i].valueOf(m, m.names[i].call, args))
			from = m.names[i].call.end
		default:
			b.WriteString(m.stands[i])
			from = at + len(m.names[i].text)
		}
	}
}

// valueOf returns what stands in the place of a call in another member's code.
func (m *member) valueOf(caller *member, c *calling, outer []string) string {
	args := make([]string, len(c.args))
	for i, a := range c.args {
		args[i] = "(" + caller.text(a.from, a.to, outer) + ")"
	}
	value := m.text(m.formula.from, m.formula.to, args)
	if number, ok := written(value); ok {
		value = number
	}
	return "(" + value + ")"
}
