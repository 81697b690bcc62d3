package allocator

import (
	"unicode/utf8"

	"github.com/berth-go/berth"
)

const (
	// maxResource is how long the key of a resource may be, in bytes.
	maxResource = 1024
	// maxReason is how much of a reason is stored, in bytes.
	maxReason = 512
)

// checkResource refuses what cannot be the key of a resource: the empty one,
// which the free list has as its sentinel, and one that is too long.
func checkResource(resource string) error {
	switch {
	case resource == "":
		return berth.Invalid("resource", "a key must not be empty")
	case len(resource) > maxResource:
		return berth.Invalid("resource", "%.40q... has %d bytes, more than %d", resource, len(resource), maxResource)
	}
	return nil
}

// checkSharers refuses what cannot be a MaxSharers; 0 is none given.
func checkSharers(n int) error {
	if n < 0 || n > maxSharers {
		return berth.Invalid("MaxSharers", "%d is not within 1 to %d", n, maxSharers)
	}
	return nil
}

// unique returns the resources without repeats, each where it came first.
func unique(resources []string) []string {
	seen := make(map[string]struct{}, len(resources))
	kept := make([]string, 0, len(resources))
	for _, resource := range resources {
		if _, repeat := seen[resource]; !repeat {
			seen[resource] = struct{}{}
			kept = append(kept, resource)
		}
	}
	return kept
}

// cutReason shortens a reason to what is stored of one, and cuts no character in
// two. Other bytes than UTF-8 are cut where they are.
func cutReason(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	end := maxReason
	for end > maxReason-utf8.UTFMax && !utf8.RuneStart(reason[end]) {
		end--
	}
	if !utf8.RuneStart(reason[end]) {
		end = maxReason
	}
	return reason[:end]
}
