package state

import (
	"fmt"
	"regexp"
	"strings"
)

// The scores of a line; see scripts/state/score.lua. Each range has the width Width, in which a moment
// (ms) fits; [Forever] stands for never.
const (
	Width    = 10_000_000_000_000
	Forever  = Width - 1
	LastLane = 511 // of the lanes of the line; above are those of the resources of a pool
	Holds    = Width
	Rests    = 262 * Width
	Expiries = 264 * Width
)

// Hold is the member of the line that is a claim's hold.
func Hold(claim string) string { return "h:" + claim }

// Behind is what stands behind the first letters of a member or a field. Without them, with nothing behind them, or
// with more than any name has, it is [ErrDamaged].
func Behind(text, begins string) (string, error) {
	rest, ok := strings.CutPrefix(text, begins)
	if !ok || rest == "" || len(text) > MaxMember {
		return "", Damaged(text)
	}
	return rest, nil
}

// Damaged is the error of a member or a field that no script has written.
func Damaged(text string) error { return damaged(fmt.Sprintf("member %q", Brief(text))) }

var placeMember = regexp.MustCompile(`(?s)^(\d+)-(.+)$`)

// PlaceOf takes the member of the line apart that a waiting claim is; see scripts/line/place.lua.
func PlaceOf(member string) (place, claim string, ok bool) {
	words := placeMember.FindStringSubmatch(member[:min(len(member), MaxMember+1)])
	if words == nil || len(member) > MaxMember {
		return "", "", false
	}
	return words[1], words[2], true
}

// ParseLane reads the field q:<claim> of a claim that waits for one resource: until when it waits for nothing
// else (ms), [Forever] for no end; see scripts/pool/lane.lua.
func ParseLane(text string) (ends int64, resource string, err error) {
	word, resource, found := strings.Cut(text, " ")
	switch {
	case !found || len(resource) > MaxResource:
	case word == "-" || word == "0":
		return Forever, resource, nil
	case bindingText.MatchString(text) && numbers([]string{word}, &ends):
		return ends, resource, nil
	}
	return 0, "", damaged("wait for a resource")
}
