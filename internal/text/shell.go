package text

import (
	"fmt"
	"strings"
)

// Shell is a command as a shell reads it. A word with anything else than letters, digits and harmless marks
// is in single quotes; one that cannot be read has its bytes as $'\ooo', which bash, zsh and ksh know.
func Shell(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		switch {
		case word != "" && strings.IndexFunc(word, Special) < 0:
			quoted[i] = word
		case Escaped(word) == word:
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		default:
			quoted[i] = octal(word)
		}
	}
	return strings.Join(quoted, " ")
}

// Special reports whether a character may mean something to a shell.
func Special(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._:/@%+,-", r)
}

func octal(word string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(word) {
		if c := word[i]; c < ' ' || c > '~' || c == '\'' || c == '\\' {
			fmt.Fprintf(&b, `\%03o`, c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}
