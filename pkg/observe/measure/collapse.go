package measure

import "strings"

// Collapse is a Config.NameClass that replaces numbers and ids by "*": "order:12345" becomes
// "order:*".
//
// An id is a UUID, or a word with a digit that has at least 8 characters, all hexadecimal, or at
// least 16 characters, such as an xid, a ULID or a hash. In every other word only the digits are
// replaced: "shard7" becomes "shard*". A word is a run of ASCII letters and digits. Names that differ
// without a digit, such as "user:alice", are left as they are; for such names write your own
// function.
func Collapse(name string) string {
	if !strings.ContainsAny(name, "0123456789") {
		return name
	}
	var b strings.Builder
	b.Grow(len(name))
	for i := 0; i < len(name); {
		switch {
		case !wordByte(name[i]):
			b.WriteByte(name[i])
			i++
		case isUUID(name[i:]):
			b.WriteByte('*')
			i += uuidLength
		default:
			end := i
			for end < len(name) && wordByte(name[end]) {
				end++
			}
			collapseWord(&b, name[i:end])
			i = end
		}
	}
	return b.String()
}

// collapseWord writes a word with its id or its numbers replaced.
func collapseWord(b *strings.Builder, word string) {
	digits, hex := 0, 0
	for i := range len(word) {
		if isDigit(word[i]) {
			digits++
		}
		if isHex(word[i]) {
			hex++
		}
	}
	if digits > 0 && (len(word) >= 16 || len(word) >= 8 && hex == len(word)) {
		b.WriteByte('*')
		return
	}
	for i := range len(word) {
		switch {
		case !isDigit(word[i]):
			b.WriteByte(word[i])
		case i == 0 || !isDigit(word[i-1]):
			b.WriteByte('*')
		}
	}
}

// uuidLength is the length of 8-4-4-4-12 hexadecimal digits.
const uuidLength = 36

// isUUID reports whether the text begins with a UUID that is a word of its own.
func isUUID(text string) bool {
	if len(text) < uuidLength || len(text) > uuidLength && wordByte(text[uuidLength]) {
		return false
	}
	for i := range uuidLength {
		switch i {
		case 8, 13, 18, 23:
			if text[i] != '-' {
				return false
			}
		default:
			if !isHex(text[i]) {
				return false
			}
		}
	}
	return true
}

func wordByte(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
