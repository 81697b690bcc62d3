package state

import (
	"strconv"
	"strings"
)

// Group is what the entries of one owner of a lock have in common; see scripts/owner/group.lua.
// Moments and lengths are milliseconds.
type Group struct {
	Fence, Count, WorkedAt, Extended, Last, ExtendedAt, More, Own, Deadline int64
	Entries                                                                 []Entry
}

// Entry is one of them. Fresh: it has no more than its wait lease yet.
type Entry struct {
	Claim string
	Fresh bool
}

// ParseGroup reads the group of the hold that has a fence. It returns nil where there is none: each hold
// has a greater fence, and a group with another one is of an earlier hold.
func ParseGroup(text string, fence int64) (*Group, error) {
	const head, each = 10, 7
	words := strings.Fields(text)
	if len(words) == 0 || words[0] != strconv.FormatInt(fence, 10) {
		return nil, nil
	}
	if len(words) < head || (len(words)-head)%each != 0 {
		return nil, damaged("group")
	}
	var g Group
	if !numbers(words, &g.Fence, &g.Count, &g.WorkedAt, &g.Extended, &g.Last, &g.ExtendedAt, &g.More, &g.Own, &g.Deadline) {
		return nil, damaged("group")
	}
	for i := head; i < len(words); i += each {
		g.Entries = append(g.Entries, Entry{Claim: words[i], Fresh: words[i+6] == "1"})
	}
	return &g, nil
}
