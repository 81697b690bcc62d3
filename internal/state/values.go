package state

import (
	"regexp"
	"strconv"
)

// The numbers above which counts are stored; see scripts/state/values.lua.
const (
	Base     = 1_000_000_000_000_000 // weights
	lineBase = 1_000_000
)

// Values are the values of a name; see scripts/state/values.lua. Moments are milliseconds by the
// server's clock.
type Values struct {
	Format, Fence, Expiry, Due, Ticket, Busy   int64
	Capacity, Used, Waiting                    int64
	Gone, Forever, Keep, Pause, Look, Revision int64
}

// fields are the values in the order of the text.
func (v *Values) fields() []*int64 {
	return []*int64{
		&v.Format, &v.Fence, &v.Expiry, &v.Due, &v.Ticket, &v.Busy, &v.Used, &v.Waiting, &v.Capacity,
		&v.Gone, &v.Forever, &v.Keep, &v.Pause, &v.Look, &v.Revision,
	}
}

var (
	valuesText = regexp.MustCompile(`^(\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (-?\d+) (-?\d+) (\d+) (\d+) (\d+) (\d+)$`)
	formatText = regexp.MustCompile(`^\d+`)
)

// ParseValues reads the values of a fat name, its field v. ok is false for those that are not to be
// interpreted; number is then what [Incompatible] takes.
func ParseValues(text string) (v Values, number int64, ok bool) {
	if number, newer := Newer(text); newer {
		return Values{}, number, false
	}
	words := valuesText.FindStringSubmatch(text)
	if words == nil || !numbers(words[1:], v.fields()...) {
		return Values{}, 0, false
	}
	if v.Used, v.Waiting, v.Capacity = v.Used-Base, v.Waiting-lineBase, v.Capacity-Base; min(v.Used, v.Waiting, v.Capacity) < 0 {
		return Values{}, 0, false
	}
	if v.Due == Forever {
		v.Due = 0
	}
	return v, 0, true
}

// Newer returns the number with which the values of a fat name begin, or the field fmt that a name had
// before there were values, and whether this release does not know it.
func Newer(text string) (number int64, newer bool) {
	digits := formatText.FindString(text)
	if digits == "" {
		return 0, false
	}
	if !numbers([]string{digits}, &number) {
		return 0, true
	}
	return number, number < oldestFormat || number > newestFormat
}

// Calm is what the values of a name say from waiting to pause, while nobody waits and nothing else is to be heeded.
func Calm(capacity int) string {
	b := append(strconv.AppendInt(make([]byte, 0, 32), lineBase, 10), ' ')
	return string(append(strconv.AppendInt(b, Base+int64(capacity), 10), " 0 0 0 0"...))
}

// ParseCount reads a count that stands above Base.
func ParseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	return n - Base, err
}
