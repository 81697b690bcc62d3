package state

import (
	"regexp"
	"strings"
)

// The scores of a line; see scripts/state/score.lua. Each range has the width Width, in which a moment
// (ms) fits; [Forever] stands for never.
const (
	Width    = 1 << 44
	Forever  = Width - 1
	LastLane = 511 // of the lanes of the line; above are those of the resources of a pool
	Holds    = Width
	Rests    = 262 * Width
	Expiries = 264 * Width
)

// Hold is the member of the line that is a claim's hold.
func Hold(claim string) string { return "h:" + claim }

// HoldOf is the counterpart of Hold.
func HoldOf(member string) (claim string, ok bool) { return strings.CutPrefix(member, "h:") }

var placeMember = regexp.MustCompile(`(?s)^(\d+)-(.+)$`)

// PlaceOf takes the member of the line apart that a waiting claim is; see scripts/line/place.lua.
func PlaceOf(member string) (place, claim string, ok bool) {
	words := placeMember.FindStringSubmatch(member)
	if words == nil {
		return "", "", false
	}
	return words[1], words[2], true
}

// ParseLane reads the field q:<claim> of a claim that waits for one resource: until when it waits for nothing
// else (ms), [Forever] for no end; see scripts/pool/lane.lua.
func ParseLane(text string) (ends int64, resource string, err error) {
	word, resource, found := strings.Cut(text, " ")
	switch {
	case !found:
	case word == "-" || word == "0":
		return Forever, resource, nil
	case bindingText.MatchString(text) && numbers([]string{word}, &ends):
		return ends, resource, nil
	}
	return 0, "", damaged("wait for a resource")
}
