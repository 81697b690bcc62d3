package state

import "regexp"

// Wants is what a claim on a pool asks for; see scripts/pool/wants.lua. Lengths are milliseconds.
type Wants struct {
	Shared, Alone bool
	Cooldown      int64
	Resource      string // the only one that will do, "" for any
	Bind          string // the name of the binding, "" for none
}

var wantsText = regexp.MustCompile(`^([a-z]) (\d+) \S+ \d+ (\d+):`)

// ParseWants reads it, the Extra of a record.
func ParseWants(extra string) (Wants, error) {
	var w Wants
	var size int64
	words := wantsText.FindStringSubmatch(extra)
	if words == nil || !numbers(words[2:], &w.Cooldown, &size) || size > int64(len(extra)-len(words[0])) {
		return Wants{}, damaged("wants")
	}
	rest := extra[len(words[0]):]
	if size > MaxResource || int64(len(rest))-size > MaxText {
		return Wants{}, damaged("wants")
	}
	w.Shared, w.Alone, w.Resource, w.Bind = words[1] == "s", words[1] == "a", rest[:size], rest[size:]
	return w, nil
}

// Return is what becomes of a resource when the hold of a claim ends without its holder's word, at a moment (ms) that has passed by now
// (ms): it leaves, or rests for its cooldown, its own or the pool's, or for as long as an operator has
// asked. w is nil where the claim's record is gone. It returns false for a claim that does not
// keep the resource from anybody. See scripts/pool/cooldown.lua and scripts/pool/remove.lua.
func (i *Item) Return(claim string, w *Wants, pool, own Settings, ended, now int64) bool {
	var stay []string
	for _, c := range i.Claims {
		if c != claim {
			stay = append(stay, c)
		}
	}
	if len(stay) == len(i.Claims) {
		return false
	}
	cooldown, ends := int64(0), int64(0)
	if w != nil {
		cooldown = w.Cooldown
	}
	if w == nil || !w.Alone {
		set := max(pool.Cooldown, 0)
		if own.Cooldown != Unset {
			set = own.Cooldown
		}
		cooldown = max(cooldown, set)
	}
	if cooldown > 0 {
		ends = ended + cooldown
	}
	if i.Pending > 0 {
		ends = max(ends, now+i.Pending)
	}
	i.Claims, i.Pending = stay, 0
	if i.Expiry > 0 && i.Expiry <= now {
		i.Leaving = true
	} else if ends > now && ends > i.Ends {
		i.Ends = min(ends, Forever)
	}
	return true
}
