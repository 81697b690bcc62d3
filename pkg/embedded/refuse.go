package embedded

import (
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// refuse runs before every command, and answers commands for which miniredis would mislead a
// client. refuse reports whether it answered.
func refuse(c *server.Peer, cmd string, args ...string) bool {
	switch cmd {
	case "HELLO":
		// On a RESP3 connection miniredis refuses all commands after a SUBSCRIBE, and may
		// write a push into the middle of a reply. A client that finds no HELLO falls back to
		// RESP2, where both are sound: pub/sub has a connection of its own then.
		if len(args) > 0 && args[0] == "3" {
			c.WriteError("ERR unknown command 'HELLO'")
			return true
		}
	case "CLUSTER":
		// miniredis would pass as a Cluster of one node, and clients would act
		// on that. This is what a single Redis says.
		c.WriteError("ERR This instance has cluster support disabled")
		return true
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO":
		if !oneTag(keysOf(args)) && !ofSeveral(args[0]) {
			c.WriteError("CROSSSLOT Keys in request don't hash to the same slot")
			return true
		}
	}
	return false
}

// keysOf returns the keys in the arguments of an EVAL: script, number of keys, keys, and the
// rest. It returns none if the arguments are wrong; miniredis then refuses them.
func keysOf(args []string) []string {
	if len(args) < 2 {
		return nil
	}
	n, err := strconv.Atoi(args[1])
	if err != nil || n < 0 || n > len(args)-2 {
		return nil
	}
	return args[2 : 2+n]
}

// ofSeveral reports whether a script, given by its hash or its source, works on several names. Berth sends such scripts
// to no Cluster.
func ofSeveral(script string) bool {
	for _, s := range []*scriptkit.Script{composed.ThinRenew, composed.FatRenew} {
		if script == s.SHA || strings.Contains(script, s.Source()) {
			return true
		}
	}
	return false
}

// oneTag reports whether all keys have the same hash tag, and so lie in one slot.
func oneTag(keys []string) bool {
	for _, key := range keys {
		if hashTag(key) != hashTag(keys[0]) {
			return false
		}
	}
	return true
}

// hashTag returns the part of a key that a Cluster hashes: the text between the first
// brace and the next closing one, or the whole key if that text is empty.
func hashTag(key string) string {
	_, rest, found := strings.Cut(key, "{")
	if !found {
		return key
	}
	tag, _, found := strings.Cut(rest, "}")
	if !found || tag == "" {
		return key
	}
	return tag
}
