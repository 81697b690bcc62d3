package state

import (
	"hash/fnv"
	"strings"
)

// Shards is over how many Redis keys the registry of names that wait is spread: keyspace.Waits
// with the names 0 to 15. So a cluster spreads it, too.
const Shards = 16

// Member is a name's member in the registry.
func Member(kind, name string) string { return kind + ":" + name }

// ParseMember returns what Member was made of. ok is false for a text that is none.
func ParseMember(member string) (kind, name string, ok bool) { return strings.Cut(member, ":") }

// Shard is which of the Redis keys has a member.
func Shard(member string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(member)) // never fails
	return int(h.Sum32() % Shards)
}
