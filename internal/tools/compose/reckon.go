package compose

import (
	"strconv"
	"strings"
)

// written returns the text that writes a whole number, where value is a call of string.format that writes one
// that is known: at every run the server takes about 3000 instructions for such a call.
func written(value string) (string, bool) {
	if !strings.HasPrefix(value, "string.format(") {
		return "", false
	}
	code, err := lex(value)
	if err != nil || at(code, 4).kind != kindText || code[4].text != "%d" || !at(code, 5).is(",") {
		return "", false
	}
	r := reckoning{code: code, at: 6}
	n := r.sum()
	if r.unknown || !r.next(")") || r.at < len(code) {
		return "", false
	}
	return strconv.Quote(strconv.FormatInt(n, 10)), true
}

// reckoning reckons whole numbers, and their sums, differences and products: as Lua does, as long as none is above
// 2^53.
type reckoning struct {
	code    []token
	at      int  // what comes next
	unknown bool // it is something else
}

// next takes the next token if that is the one given.
func (r *reckoning) next(text string) bool {
	if !at(r.code, r.at).is(text) {
		return false
	}
	r.at++
	return true
}

func (r *reckoning) sum() int64 {
	n := r.product()
	for {
		switch {
		case r.next("+"):
			n = r.known(n + r.product())
		case r.next("-"):
			n = r.known(n - r.product())
		default:
			return n
		}
	}
}

func (r *reckoning) product() int64 {
	n := r.number()
	for r.next("*") {
		by := r.number()
		if n != 0 && max(by, -by) > 1<<53/max(n, -n) {
			r.unknown = true
			return 0
		}
		n *= by
	}
	return n
}

func (r *reckoning) number() int64 {
	if r.next("(") {
		n := r.sum()
		r.unknown = r.unknown || !r.next(")")
		return n
	}
	t := at(r.code, r.at)
	n, err := strconv.ParseInt(t.text, 10, 64)
	if err != nil || t.kind != kindNumber {
		r.unknown = true
		return 0
	}
	r.at++
	return r.known(n)
}

func (r *reckoning) known(n int64) int64 {
	if n > 1<<53 || n < -1<<53 {
		r.unknown = true
	}
	return n
}
