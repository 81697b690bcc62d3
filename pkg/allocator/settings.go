package allocator

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Settings are what all processes go by that use a pool. They are stored with the pool. A zero field says
// nothing: Set leaves it as it is, and Settings reads it where nobody has said anything, so that the
// default counts.
type Settings struct {
	// Policy says which of the free resources comes next. Default LeastRecent.
	Policy Policy `json:"policy,omitzero"`
	// Cooldown is how long a resource rests after each hold, however the hold ended: whole
	// milliseconds, not berth.Forever; below 0 not at all. A call may ask for a longer one.
	// Default not at all.
	Cooldown time.Duration `json:"cooldownMs,omitzero" wire:"below"`
	// MaxSharers is how many may hold one resource at once, each with a lease of its own:
	// 1 to 100. Default 1.
	MaxSharers int `json:"maxSharers,omitzero"`
	// BindFor is how long a binding lasts where the call does not say: whole milliseconds, or
	// berth.Forever. Default 1 h.
	BindFor time.Duration `json:"bindForMs,omitzero"`
	// MaxLease is the longest Lease that a call may ask for: whole milliseconds, at least 20 ms,
	// or berth.Forever for no limit. A call that asks for none gets no longer one. Default no limit.
	MaxLease time.Duration `json:"maxLeaseMs,omitzero"`
	// MaxHold is the longest MaxHold that a call may ask for: whole milliseconds, at least 20 ms,
	// or berth.Forever for no limit. A call that asks for none gets this one: its hold ends then with
	// berth.ErrExpired, renewed or not. Default no limit.
	MaxHold time.Duration `json:"maxHoldMs,omitzero"`

	// Reset is for Set alone: fields that are zero become unset. What a process says of them counts then.
	Reset bool `json:"-"`
	// ByOperator says that an operator has set something. Only reading fills it.
	ByOperator bool `json:"byOperator"`
}

// What stands for nothing: in what is stored, in what processes say, and in what pool_set is
// told; and what a process says of who has set the words, one that is Strict too. See
// scripts/pool/settings.lua.
const (
	wordUnset   = "-"
	wordAnyWord = "%S+"
	wordAsItIs  = "."
	anyOne      = "%S"
	strictOne   = "[-op]"
)

// words are the settings as the scripts have them: policy, cooldown, sharers, bindfor, lease, hold.
func (s Settings) words(nothing string) []string {
	words := []string{nothing, nothing, nothing, nothing, nothing, nothing}
	if s.Policy != 0 {
		words[0] = s.Policy.letter()
	}
	if s.Cooldown != 0 {
		words[1] = line.Decimal(max(s.Cooldown, 0).Milliseconds())
	}
	if s.MaxSharers != 0 {
		words[2] = strconv.Itoa(s.MaxSharers)
	}
	for i, d := range []time.Duration{s.BindFor, s.MaxLease, s.MaxHold} {
		if d == berth.Forever {
			words[3+i] = "0"
		} else if d != 0 {
			words[3+i] = line.Decimal(d.Milliseconds())
		}
	}
	return words
}

// settingNames are the fields of Settings, in the order of words.
var settingNames = []string{"Policy", "Cooldown", "MaxSharers", "BindFor", "MaxLease", "MaxHold"}

// settingsOf are the settings as they are stored, of a pool or of a resource.
func settingsOf(stored state.Settings) Settings {
	endless := func(n int64) time.Duration {
		switch n {
		case state.Unset:
			return 0
		case 0:
			return berth.Forever
		}
		return state.Millis(n)
	}
	s := Settings{
		ByOperator: stored.By == 'o', Policy: policyOf(string(stored.Policy)), MaxSharers: int(max(stored.Sharers, 0)),
		BindFor: endless(stored.BindFor), MaxLease: endless(stored.Lease), MaxHold: endless(stored.Hold),
	}
	switch n := stored.Cooldown; n {
	case state.Unset:
	case 0:
		s.Cooldown = -1
	default:
		s.Cooldown = state.Millis(n)
	}
	return s
}

// parseSettings reads the stored settings of a pool.
func parseSettings(text string) (Settings, error) {
	stored, err := state.ParseSettings(text)
	if err != nil {
		return Settings{}, err
	}
	return settingsOf(stored), nil
}

// parseOwn reads what is stored of a resource's own settings.
func parseOwn(text string) (Settings, error) {
	stored, err := state.ParseOwn(text)
	if err != nil {
		return Settings{}, err
	}
	s := settingsOf(stored)
	s.ByOperator = true
	return s, nil
}

// policyOf is the counterpart of letter.
func policyOf(word string) Policy {
	for p := LeastRecent; p <= Random; p++ {
		if p.letter() == word {
			return p
		}
	}
	return 0
}

// differences are the fields where both say something, and not the same: the name, the value of s, that of
// other.
func (s Settings) differences(other Settings) (all [][3]string) {
	mine, theirs := s.texts(), other.texts()
	for i, name := range settingNames {
		if mine[i] != "" && theirs[i] != "" && mine[i] != theirs[i] {
			all = append(all, [3]string{name, mine[i], theirs[i]})
		}
	}
	return all
}

// say is how the fields of other are called where s has others, each with the value of both; "" for none.
// What other leaves unset is no difference.
func (s Settings) say(other Settings) string {
	var texts []string
	for _, d := range s.differences(other) {
		texts = append(texts, fmt.Sprintf("%s %s, stored %s", d[0], d[1], d[2]))
	}
	return strings.Join(texts, "; ")
}

// texts are the values for people, in the order of words; "" for nothing.
func (s Settings) texts() []string {
	endless := func(d time.Duration, word string) string {
		switch d {
		case 0:
			return ""
		case berth.Forever:
			return word
		}
		return d.String()
	}
	texts := make([]string, len(settingNames))
	if s.Policy != 0 {
		texts[0] = s.Policy.String()
	}
	if s.Cooldown != 0 {
		texts[1] = max(s.Cooldown, 0).String()
	}
	if s.MaxSharers != 0 {
		texts[2] = strconv.Itoa(s.MaxSharers)
	}
	texts[3] = endless(s.BindFor, "forever")
	texts[4], texts[5] = endless(s.MaxLease, "no limit"), endless(s.MaxHold, "no limit")
	return texts
}

// String names the fields that say something, such as "Cooldown 30s, MaxSharers 2".
func (s Settings) String() string {
	var texts []string
	for i, text := range s.texts() {
		if text != "" {
			texts = append(texts, settingNames[i]+" "+text)
		}
	}
	return strings.Join(texts, ", ")
}

// validate returns a *berth.ConfigError for the first value that cannot be.
func (s Settings) validate() error {
	if s.Policy < 0 || s.Policy > Random {
		return berth.Invalid("Policy", "%d is no policy", int(s.Policy))
	}
	if s.Cooldown == berth.Forever {
		return berth.Invalid("Cooldown", "each resource could be used once, and never again")
	}
	return cmp.Or(
		settings.Duration("Cooldown", max(s.Cooldown, 0)),
		checkSharers(s.MaxSharers),
		settings.Duration("BindFor", s.BindFor),
		settings.MaxHold("MaxLease", s.MaxLease), // 0 is none, as of a maximum hold
		settings.MaxHold("MaxHold", s.MaxHold),
	)
}

// opinions are what a process says, as scripts compare it with what is stored; "" for nothing.
func (s Settings) opinions(strict bool) string {
	if s == (Settings{}) {
		return ""
	}
	by := anyOne
	if strict {
		by = strictOne
	}
	return by + " " + strings.Join(s.words(wordAnyWord), " ") + "$"
}

// Set changes the settings of a pool, or with a resource what that one has of its own: Cooldown,
// MaxSharers and BindFor, which go with it. No process changes back what an operator has set; but an
// Add or a Replace that gives MaxSharers sets it for its resources that have none of their own. Set
// takes effect at once, on all processes: the cooldown at the end of today's holds, the policy with
// the next grants, BindFor with the next bindings, the limits with the next calls; that a limit is
// higher, or gone, reaches calls that ask for none within a minute. MaxSharers of a pool is set for
// all its resources that have none of their own, in steps of about 100, and for those that come;
// nobody loses a hold by it, and a Reset leaves the resources that are there as they are. A pool that
// an operator has set something of is never forgotten, until a Set with Reset and nothing else. It
// need not have resources: a name that is misspelt is no error.
//
// Set returns berth.ErrInvalidConfig for bad arguments, berth.ErrAbsent if the resource is not in the
// pool, is leaving it or is damaged; a *berth.OvertakenError, which matches berth.ErrOvertaken, if another
// operator's call has changed the same meanwhile, and then Set has changed nothing;
// berth.ErrIncompatible, or the server's error. Repeat a Set that ended early, among the resources.
func (o *Operator) Set(ctx context.Context, name, resource string, s Settings) error {
	if o.bad != nil {
		return o.bad
	}
	if err := keyspace.CheckName(name); err != nil {
		return err
	}
	if err := s.validate(); err != nil {
		return err
	}
	of := s
	of.Reset, of.ByOperator = false, false
	switch {
	case of == (Settings{}) && !s.Reset:
		return berth.Invalid("s", "it says nothing")
	case resource != "" && (s.Policy != 0 || s.MaxLease != 0 || s.MaxHold != 0):
		return berth.Invalid("s", "a resource has no Policy, MaxLease or MaxHold of its own: they are asked for before it is known")
	case resource != "":
		if err := checkResource(resource); err != nil {
			return err
		}
	}
	nothing := wordAsItIs
	if s.Reset {
		nothing = wordUnset
	}
	words := of.words(nothing)
	if resource != "" {
		words = words[1:4]
	}
	what := of.String()
	if s.Reset {
		what = strings.TrimPrefix(what+", all else reset", ", ")
	}
	return o.pools.face().set(ctx, name, resource, strings.Join(words, " "), what, resource == "" && s.MaxSharers > 0)
}

// Settings reads what is stored of the settings of a pool. It returns berth.ErrInvalidConfig for a bad
// name, berth.ErrIncompatible, or the server's error.
func (o *Operator) Settings(ctx context.Context, name string) (Settings, error) {
	if o.bad != nil {
		return Settings{}, o.bad
	}
	return o.pools.settings(ctx, name)
}

// settings are what is stored of the settings of a pool.
func (s *pools) settings(ctx context.Context, name string) (Settings, error) {
	stored, err := s.look.Settings(ctx, name)
	if err != nil {
		return Settings{}, err
	}
	return settingsOf(stored), nil
}
