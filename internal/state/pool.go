package state

import (
	"regexp"
	"strings"
)

// Counts are the counts of a pool; see scripts/pool/counts.lua. Settings is for [ParseSettings].
type Counts struct {
	Resources, Free, Leased, Leaving, Generation, Parked int64
	Filled                                               bool
	Settings                                             string
}

var countsText = regexp.MustCompile(`(?s)^(\d{16}) (\d{13}) (\d{16}) (\d{16}) (\d{16}) (\d{16}) (\d) (\S \S \S.*)$`)

// ParseCounts reads the field pool of a state, "" where there is none; used is that of its [Values].
func ParseCounts(text string, used int64) (Counts, error) {
	if text == "" {
		return Counts{Settings: "- - - - - - -"}, nil
	}
	var c Counts
	var apart, others int64
	words := countsText.FindStringSubmatch(text)
	if words == nil || !numbers(words[1:], &c.Resources, &c.Generation, &apart, &others, &c.Parked, &c.Leaving) {
		return Counts{}, damaged("counts of a pool")
	}
	for _, n := range []*int64{&c.Resources, &c.Parked, &c.Leaving} {
		*n -= Base
	}
	c.Free, c.Leased = c.Resources-used-(apart-2*Base), used+apart-others
	if min(c.Free, c.Resources, c.Leased, c.Parked, c.Leaving) < 0 {
		return Counts{}, damaged("counts of a pool")
	}
	c.Filled, c.Settings = words[7] == "1", words[8]
	return c, nil
}

// Unset stands for a word of the settings that nobody has set.
const Unset = -1

// Settings are those of a pool, or of a resource; see scripts/pool/settings.lua. Lengths are milliseconds.
type Settings struct {
	By, Policy                              byte // '-' where unset
	Cooldown, Sharers, BindFor, Lease, Hold int64
}

var settingsText = regexp.MustCompile(`^(\S) (\S) (\d+|-) (\d+|-) (\d+|-) (\d+|-) (\d+|-)$`)

// ParseSettings reads the settings of a pool.
func ParseSettings(text string) (Settings, error) {
	words := settingsText.FindStringSubmatch(text)
	if words == nil {
		return Settings{}, damaged("settings")
	}
	for i, word := range words {
		if i > 2 && word == "-" {
			words[i] = "-1" // Unset
		}
	}
	s := Settings{By: words[1][0], Policy: words[2][0]}
	if !numbers(words[3:], &s.Cooldown, &s.Sharers, &s.BindFor, &s.Lease, &s.Hold) {
		return Settings{}, damaged("settings")
	}
	return s, nil
}

// ParseOwn reads what a resource has of its own, its field s:<resource>: cooldown, sharers, bindfor.
func ParseOwn(text string) (Settings, error) { return ParseSettings("- - " + text + " - -") }

// Item is what is stored of a resource; see scripts/pool/item.lua. Moments are milliseconds, 0 for none.
type Item struct {
	Max, Expiry, Ends, Pending, Revision int64
	Leaving, Own                         bool // Own: it has settings of its own
	Claims                               []string
	Reason                               string
}

// Listed says whether it belongs among the free ones.
func (i *Item) Listed() bool { return !i.Leaving && i.Ends == 0 && int64(len(i.Claims)) < i.Max }

var itemHead = regexp.MustCompile(`^(\d+) (\d+) (\d+) (\d+) (\d+) ([0-3]) (\d+) `)

// ParseItem reads it.
func ParseItem(text string) (Item, error) {
	var i Item
	var flags, count int64
	words := itemHead.FindStringSubmatch(text)
	if words == nil || !numbers(words[1:], &i.Max, &i.Expiry, &i.Ends, &i.Pending, &i.Revision, &flags, &count) ||
		i.Max == 0 || max(i.Max, i.Expiry, i.Ends, i.Pending, i.Revision) > Forever {
		return Item{}, damaged("resource")
	}
	i.Leaving, i.Own = flags&1 != 0, flags&2 != 0
	rest := text[len(words[0]):]
	for range count {
		claim, behind, found := strings.Cut(rest, " ")
		if !found || claim == "" {
			return Item{}, damaged("resource")
		}
		i.Claims, rest = append(i.Claims, claim), behind
	}
	if i.Reason = rest; len(rest) > MaxText {
		return Item{}, damaged("resource")
	}
	return i, nil
}

// Binding is what a name is bound to; see scripts/pool/binding.lua. Ends is a moment (ms), [Forever] for never.
type Binding struct {
	Ends     int64
	Resource string
}

var bindingText = regexp.MustCompile(`(?s)^(\d+) (.*)$`)

// ParseBinding reads it.
func ParseBinding(text string) (b Binding, err error) {
	words := bindingText.FindStringSubmatch(text)
	if words == nil || len(words[2]) > MaxResource || !numbers(words[1:2], &b.Ends) {
		return Binding{}, damaged("binding")
	}
	b.Resource = words[2]
	return b, nil
}
