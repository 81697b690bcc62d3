package keyspace_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// crc16 is the checksum of the Redis Cluster specification (XMODEM).
func crc16(text string) uint16 {
	var crc uint16
	for i := range len(text) {
		crc ^= uint16(text[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// hashTag is what Redis Cluster hashes of a key: the text between the first {
// and the next }, or all of it where there is no such text.
func hashTag(key string) string {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, found := strings.Cut(rest, "}"); found && tag != "" {
			return tag
		}
	}
	return key
}

func slot(key string) uint16 { return crc16(hashTag(key)) % 16384 }

// The values are those of the specification and of CLUSTER KEYSLOT.
func TestSlotIsTheOneOfRedis(t *testing.T) {
	require.Equal(t, uint16(0x31c3), crc16("123456789"))
	require.Equal(t, uint16(12182), slot("foo"))
	require.Equal(t, uint16(12182), slot("a{foo}b{bar}"))
	require.Equal(t, slot("{user1000}.following"), slot("{user1000}.followers"))
	require.Equal(t, "foo{}{bar}", hashTag("foo{}{bar}"))
	require.Equal(t, "{bar", hashTag("foo{{bar}}zap"))
}

func TestAllKeysOfANameLieInItsSlot(t *testing.T) {
	for _, ns := range []string{"berth", "shop:eu", ":"} {
		space := newSpace(t, ns)
		for _, name := range []string{"gpu", "invoice:42", ":", "a b", "Überweisung", "*"} {
			for _, kind := range kinds {
				require.Equal(t, slot(name), slot(space.State(kind, name)))
				require.Equal(t, slot(name), slot(space.Line(kind, name)))
				require.Equal(t, slot(name), slot(space.Key(kind, name, "any")))
			}
			require.Equal(t, slot(name), slot(space.Probes(name)))
		}
	}
}
