// Package text makes durations, and texts that others have written, fit to be read. It
// knows which characters a reader does not see as they are.
package text

import (
	"strings"
	"unicode"
)

// brailleBlank is the one symbol that is printed as a space.
const brailleBlank = '\u2800'

// Hidden reports whether a character commands a terminal, breaks a line, turns the
// direction of what stands beside it, or cannot be seen at all: two texts that
// differ by it look the same.
func Hidden(r rune) bool {
	if r < 0x7f { // most of all texts, and the tables are slow
		return r < ' '
	}
	return r == brailleBlank || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Fits reports whether a text is the pattern or, where the pattern ends in *, begins with what stands
// before the *.
func Fits(pattern, text string) bool {
	if begin, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(text, begin)
	}
	return pattern == text
}
