package state

import "strings"

// How long what is stored may be, in bytes. Callers are refused what is longer, so a text that is longer was not
// written by Berth: it is damaged, and no part of it is kept.
const (
	// MaxText bounds an owner, a label, a reason, an error, and the name of a binding.
	MaxText = 512
	// MaxMeta bounds the keys and values of metadata together.
	MaxMeta = 16 << 10
	// MaxResource bounds the key of a resource.
	MaxResource = 1024
	// MaxMember bounds a member of a sorted set, and the name of a field: the longest is that of a resource.
	MaxMember = MaxResource + 16
	// MaxStored bounds each value. The longest is a record, with metadata of single bytes, each behind its length.
	MaxStored = 5*MaxMeta + 8<<10
)

// Brief is the beginning of a text, for an error.
func Brief(text string) string { return strings.Clone(text[:min(len(text), 64)]) }

// Bounded is a text of the server, or its first letter where it is longer than anything that Berth writes: that parses
// as nothing, and the rest is not kept.
func Bounded(text string) string {
	if len(text) > MaxStored {
		return strings.Clone(text[:1])
	}
	return text
}
