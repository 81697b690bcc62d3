package compose

import (
	"fmt"
	"slices"
)

// checkLost refuses an assignment that the embedded server may not make. gopher-lua (1.1.1 and 1.1.2) leaves a local
// variable as it was where its new value is `a and b`, and a is false or nil, but no local variable of the same function,
// comparison or literal: docs/gopher-lua.md has the case. It reads a script as it is sent.
func checkLost(code []token) error {
	scopes := []within{{function: true}}
	var coming []token // the variables of a for, up to its do
	for i, t := range code {
		switch {
		case t.is("for"):
			coming, _ = declaredNames(code, i+1)
		case t.is("local") && at(code, i+1).is("function"):
			scopes[len(scopes)-1].declare(code[i+2])
		case t.is("local"):
			names, _ := declaredNames(code, i+1)
			scopes[len(scopes)-1].declare(names...)
		case t.is("else"), t.is("elseif"):
			scopes[len(scopes)-1].names = nil
		case t.is("=") && scopes[len(scopes)-1].by != "{" && assigns(code, i):
			values := code[i+1 : max(i+1, expressions(code, i+1))]
			if loses(values, false, scopes) {
				return fmt.Errorf("line %d: the embedded server may leave %s as it was: write an if, or a new local", t.line, code[i-1].text)
			}
		}
		switch depth := nesting(t) + blocks(t); {
		case depth > 0:
			next := within{by: t.text, function: t.is("function")}
			switch {
			case next.function:
				from := i + 1 + slices.IndexFunc(code[i+1:], func(t token) bool { return t.is("(") })
				params, _ := declaredNames(code, from+1)
				next.declare(params...)
			case t.is("do"):
				next.declare(coming...)
				coming = nil
			}
			scopes = append(scopes, next)
		case depth < 0 && len(scopes) == 1:
			return fmt.Errorf("line %d: %s closes nothing", t.line, t.text)
		case depth < 0:
			scopes = scopes[:len(scopes)-1]
		}
	}
	return nil
}

// within is a block or a bracket that is open, with the variables that it declares.
type within struct {
	by       string // its first token
	function bool
	names    []string
}

func (b *within) declare(names ...token) {
	for _, name := range names {
		b.names = append(b.names, name.text)
	}
}

// isLocal reports whether a name is a variable of the innermost function.
func isLocal(name string, scopes []within) bool {
	for _, b := range slices.Backward(scopes) {
		if slices.Contains(b.names, name) {
			return true
		}
		if b.function {
			break
		}
	}
	return false
}

// assigns reports whether what stands before the = at i are variables that there are, one of them no field.
func assigns(code []token, i int) bool {
	plain := false
	for {
		i--
		first := i
		for { // back to the first token of the target
			switch t := at(code, i); {
			case t.is("]") || t.is(")"):
				i = opener(code, i) - 1
				continue
			case !isIdentifier(t):
				return plain
			}
			if before := at(code, i-1); !before.is(".") && !before.is(":") {
				break
			}
			i -= 2
		}
		plain = plain || i == first
		switch before := at(code, i-1); {
		case before.is("local") || before.is("for"):
			return false
		case !before.is(","):
			return plain
		}
		i--
	}
}

// opener returns the index of the bracket that the one at i closes, -1 for none.
func opener(code []token, i int) int {
	for depth := 0; i >= 0; i-- {
		if depth += nesting(code[i]); depth == 0 {
			return i
		}
	}
	return -1
}

// loses reports whether a part of the values is lost where it is false or nil. Unless more follows, the last part of a
// value is not: it is reckoned where the value belongs.
func loses(values []token, more bool, scopes []within) bool {
	for _, value := range split(values, ",") {
		ors := split(value, "or") // where one of them is false or nil, the next one counts
		ands := split(ors[len(ors)-1], "and")
		for n, part := range ands {
			switch last := n == len(ands)-1 && !more; {
			case len(part) > 2 && part[0].is("(") && closed(part, 0, nesting) == len(part):
				if loses(part[1:len(part)-1], !last, scopes) {
					return true
				}
			case !last && mayBeFalse(part, scopes):
				return true
			}
		}
	}
	return false
}

var comparisons = []string{"==", "~=", "<", "<=", ">", ">="}

// mayBeFalse reports whether a part of an `and` may be false or nil, and is reckoned elsewhere than where its value
// belongs.
func mayBeFalse(part []token, scopes []within) bool {
	has := func(by string) bool { return len(split(part, by)) > 1 }
	switch {
	case slices.ContainsFunc(comparisons, has): // it is right
		return false
	case len(part) == 0 || part[0].is("not"):
		return true
	case len(part) == 1:
		return part[0].is("...") || isIdentifier(part[0]) && !isLocal(part[0].text, scopes)
	case part[0].is("{") || part[0].is("function") || part[0].is("-") || part[0].is("#"):
		return false
	}
	return !slices.ContainsFunc([]string{"+", "-", "*", "/", "%", "^", ".."}, has) // a number, or a text
}

// split divides code at a word or a symbol that stands in no brackets and in no function.
func split(code []token, by string) [][]token {
	var parts [][]token
	depth, from := 0, 0
	for i, t := range code {
		if depth += nesting(t) + blocks(t); depth == 0 && t.is(by) {
			parts, from = append(parts, code[from:i]), i+1
		}
	}
	return append(parts, code[from:])
}
