package compose

import "slices"

// definition returns the name that the first statement of code defines, and the number
// of tokens of that statement. The name is "" for any other statement. The number is -1
// for a definition that has no end.
func definition(code []token) (name string, size int) {
	first, second := at(code, 1), at(code, 2)
	switch {
	case !code[0].is("local"):
	case first.is("function") && isIdentifier(second):
		size = closed(code, 1, blocks)
		if !at(code, 3).is("(") || size < 0 || closed(code[:size], 3, nesting) < 0 {
			size = -1
		}
		return second.text, size
	case isIdentifier(first) && second.is("="):
		return first.text, expression(code, 3)
	}
	return "", 0
}

// expression returns the index behind the expression that begins at i, and -1 if there
// is none or it has no end.
func expression(code []token, i int) int {
	for {
		for at(code, i).is("not") || at(code, i).is("-") || at(code, i).is("#") {
			i++
		}
		i = operand(code, i)
		if t := at(code, i); t.kind == kindText || !slices.Contains(operators, t.text) {
			return i
		}
		i++
	}
}

// operand returns the index behind the value that begins at i and behind what indexes
// or calls that value, and -1 if there is none or it has no end.
func operand(code []token, i int) int {
	switch t := at(code, i); {
	case t.is("("):
		i = closed(code, i, nesting)
	case isIdentifier(t):
		i++
	case t.is("{"):
		return closed(code, i, nesting)
	case t.is("function"):
		return closed(code, i, blocks)
	case t.kind == kindNumber || t.kind == kindText || t.is("nil") || t.is("true") || t.is("false") || t.is("..."):
		return i + 1
	default:
		return -1
	}
	for i >= 0 {
		switch t := at(code, i); {
		case (t.is(".") || t.is(":")) && isIdentifier(at(code, i+1)):
			i += 2
		case t.kind == kindText:
			i++
		case t.is("(") || t.is("[") || t.is("{"):
			i = closed(code, i, nesting)
		default:
			return i
		}
	}
	return i
}

// isLiteral reports whether code, the value of a definition, is the same wherever it
// stands: numbers, text, and what is reckoned of them.
func isLiteral(code []token) bool {
	return !slices.ContainsFunc(code, func(t token) bool {
		return isIdentifier(t) || t.is("function") || t.is("{") || t.is("...")
	})
}

// closed returns the index behind the token that closes what the token at i opens, and
// -1 if there is none. Depth says how much deeper the code is behind a token.
func closed(code []token, i int, depth func(token) int) int {
	for open := 0; i < len(code); i++ {
		open += depth(code[i])
		if open == 0 {
			return i + 1
		}
	}
	return -1
}

// blocks is how much deeper in blocks the source is behind t. A for and a while open
// theirs with do.
func blocks(t token) int {
	if t.kind == kindName {
		switch t.text {
		case "function", "if", "do", "repeat":
			return 1
		case "end", "until":
			return -1
		}
	}
	return 0
}

var operators = []string{"+", "-", "*", "/", "%", "^", "..", "==", "~=", "<", "<=", ">", ">=", "and", "or"}

func isIdentifier(t token) bool { return t.kind == kindName && t.text != "" && !isKeyword(t.text) }

func isKeyword(text string) bool {
	switch text {
	case "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in",
		"local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while":
		return true
	}
	return false
}
