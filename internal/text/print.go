package text

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/berth-go/berth"
)

// Human is a duration as people read it: to three digits or so.
func Human(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == berth.Forever:
		return "forever"
	case d < 0:
		return "0s"
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d.Round(100*time.Millisecond) < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d.Round(time.Second) < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 2*day:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		d = d.Round(time.Hour)
		return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
	}
}

// Plain makes a text that others have written fit for a cell: one with a character
// that cannot be read is quoted, so that it can neither break the table, nor
// command the terminal, nor look like another.
func Plain(text string) string {
	switch {
	case text == "":
		return "-"
	case utf8.ValidString(text) && strings.IndexFunc(text, Unreadable) < 0:
		return text
	}
	return Quoted(text)
}

// Quoted is a text in double quotes, with escapes as in Go.
func Quoted(text string) string { return Escaped(strconv.Quote(text)) }

// wordMost is how many characters of a text a Word shows.
const wordMost = 64

// Word makes a text that others have written fit for a sentence: one that could be
// taken for a part of the sentence is quoted, and a long one is cut.
func Word(text string) string {
	if text != "" && len(text) <= wordMost && strings.IndexFunc(text, notOfWord) < 0 {
		return text
	}
	return Excerpt(text)
}

// Excerpt is a text in double quotes of which no more than 64 characters are shown.
func Excerpt(text string) string {
	n := 0
	for i := range text {
		if n++; n > wordMost {
			return strings.TrimSuffix(Quoted(text[:i]), `"`) + `..."`
		}
	}
	return Quoted(text)
}

func notOfWord(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._:/@+-", r)
}

// Escaped is a text with an escape, as in Go, for each character that cannot be
// read.
func Escaped(text string) string {
	return Replaced(text, Unreadable, func(r rune) string { return strings.Trim(strconv.QuoteRuneToASCII(r), "'") })
}

// Unreadable reports whether a character is not to be printed as it is.
func Unreadable(r rune) bool { return !unicode.IsPrint(r) || Hidden(r) }

// Replaced replaces some characters of a text, and bytes that are none.
func Replaced(text string, some func(rune) bool, by func(rune) string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, some) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if some(r) {
			b.WriteString(by(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
