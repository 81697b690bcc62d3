package compose

import (
	"fmt"
	"slices"
)

// checkLost refuses an assignment that the embedded server may not make. gopher-lua (1.1.1 and 1.1.2) leaves a local
// variable as it was where its new value is `a and b`, and a is false or nil, but no local variable, comparison or
// literal: docs/gopher-lua.md has the case. It reads a script as it is sent.
func checkLost(code []token) error {
	var open []string               // the brackets and blocks that are open, by their first tokens
	locals := []map[string]bool{{}} // of the functions that are open, the innermost last
	declare := func(names []token) {
		for _, name := range names {
			locals[len(locals)-1][name.text] = true
		}
	}
	for i, t := range code {
		switch {
		case t.is("local"), t.is("for"):
			names, _ := declaredNames(code, i+1)
			declare(names)
		case t.is("=") && assigns(code, i) && (len(open) == 0 || open[len(open)-1] != "{"):
			values := code[i+1 : max(i+1, expressions(code, i+1))]
			if loses(values, false, locals[len(locals)-1]) {
				return fmt.Errorf("line %d: the embedded server may leave %s as it was: write an if, or a new local", t.line, code[i-1].text)
			}
		}
		switch depth := nesting(t) + blocks(t); {
		case depth > 0:
			open = append(open, t.text)
			if t.is("function") {
				locals = append(locals, map[string]bool{})
				from := i + 1 + slices.IndexFunc(code[i+1:], func(t token) bool { return t.is("(") })
				params, _ := declaredNames(code, from+1)
				declare(params)
			}
		case depth < 0:
			if open[len(open)-1] == "function" {
				locals = locals[:len(locals)-1]
			}
			open = open[:len(open)-1]
		}
	}
	return nil
}

// assigns reports whether what stands before the = at i are variables that there are, one of them no field.
func assigns(code []token, i int) bool {
	plain := false
	for i--; isIdentifier(at(code, i)); i -= 2 {
		before := at(code, i-1)
		if before.is(".") || before.is(":") || before.is("]") {
			return plain
		}
		plain = true
		if before.is("local") || before.is("for") {
			return false
		}
		if !before.is(",") {
			break
		}
	}
	return plain
}

// loses reports whether a part of the values is lost where it is false or nil. Unless more follows, the last part of a
// value is not: it is reckoned where the value belongs.
func loses(values []token, more bool, locals map[string]bool) bool {
	for _, value := range split(values, ",") {
		ors := split(value, "or") // where one of them is false or nil, the next one counts
		ands := split(ors[len(ors)-1], "and")
		for n, part := range ands {
			switch last := n == len(ands)-1 && !more; {
			case part[0].is("(") && closed(part, 0, nesting) == len(part):
				if loses(part[1:len(part)-1], !last, locals) {
					return true
				}
			case !last && mayBeFalse(part, locals):
				return true
			}
		}
	}
	return false
}

// mayBeFalse reports whether a part of an `and` may be false or nil, and is reckoned elsewhere than where its value
// belongs.
func mayBeFalse(part []token, locals map[string]bool) bool {
	if len(part) == 1 {
		return isIdentifier(part[0]) && !locals[part[0].text]
	}
	for _, by := range operators { // a comparison is right; a number and a text are neither
		if by != "and" && by != "or" && len(split(part, by)) > 1 {
			return false
		}
	}
	return !part[0].is("{") && !part[0].is("function") && !part[0].is("-") && !part[0].is("#")
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
