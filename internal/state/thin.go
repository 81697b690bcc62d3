package state

import (
	"fmt"
	"regexp"
)

// Thin is what the text of a thin name says; see scripts/state/thin.lua.
type Thin struct {
	Fence int64
	// Claim is that of its hold, "" for an idle name; Record is the text of its record, as a fat name
	// would have it, Since when it was renewed last, and Ends its deadline (ms by the server's clock).
	Claim, Record string
	Since, Ends   int64
}

var (
	thinText  = regexp.MustCompile(`(?s)^(\d{16})(?: (\d{13}) ((\S+)\.[^\s.]+) (\S+ 1 [a-zA-Z] \d+ (\d+) (\d+) .*))?$`)
	thinNewer = regexp.MustCompile(`^f(\d+) `)
	// thinFormer is how a name that is held had it before v0.1.0: its number was 2.
	thinFormer = regexp.MustCompile(`^\d+ \d+ \S+ 1 \S+ [a-zA-Z] \d+ `)
)

// ParseThin reads the text of a thin name. ok is false for one that is not to be interpreted; number is then
// what [Incompatible] takes.
func ParseThin(text string) (thin Thin, number int64, ok bool) {
	if words := thinNewer.FindStringSubmatch(text); words != nil {
		numbers(words[1:], &number)
		return Thin{}, number, false
	}
	var lease, most int64
	words := thinText.FindStringSubmatch(text)
	if words == nil && thinFormer.MatchString(text) {
		return Thin{}, 2, false
	}
	if words == nil || !numbers([]string{words[1], words[2], words[6], words[7]}, &thin.Fence, &thin.Since, &lease, &most) {
		return Thin{}, 0, false
	}
	if words[3] == "" {
		return thin, 0, true
	}
	thin.Claim, thin.Ends = words[3], thin.Since+lease
	granted, limit := thin.Fence/1000, int64(0)
	if most > 0 {
		limit = granted + most
		thin.Ends = min(thin.Ends, limit)
	}
	thin.Record = fmt.Sprintf("h %013d %016d %013d %013d %s %s", granted, thin.Fence, granted, limit, words[4], words[5])
	return thin, 0, true
}
