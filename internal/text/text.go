// Package text makes durations, and texts that others have written, fit to be read. It
// knows which characters a reader does not see as they are.
package text

import "unicode"

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
