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

// Settings are stored with a pool and count for all processes that use it. A zero field means unset: Set
// leaves the stored value as it is, and reading returns zero for a setting that nobody has set, for which
// the default counts.
type Settings struct {
	// Policy says which free resource the next claim gets. Default LeastRecent.
	Policy Policy `json:"policy,omitzero"`
	// Cooldown is how long a resource rests after each hold, however the hold ended: whole
	// milliseconds, not berth.Forever; below 0 not at all. A call may ask for a longer cooldown.
	// Default not at all.
	Cooldown time.Duration `json:"cooldownMs,omitzero" wire:"below"`
	// MaxSharers is how many claims may hold one resource at once, each with its own lease: 1 to
	// 100. Default 1.
	MaxSharers int `json:"maxSharers,omitzero"`
	// BindFor is how long a binding lasts if the call does not say: whole milliseconds, or
	// berth.Forever. Default 1 h.
	BindFor time.Duration `json:"bindForMs,omitzero"`
	// MaxLease is the longest Lease that a call may ask for: whole milliseconds, at least 20 ms, or
	// berth.Forever for no limit. A call without a Lease gets a lease within the limit. Default no
	// limit.
	MaxLease time.Duration `json:"maxLeaseMs,omitzero"`
	// MaxHold is the longest MaxHold that a call may ask for: whole milliseconds, at least 20 ms, or
	// berth.Forever for no limit. A call without a MaxHold gets this limit: its hold ends then with
	// berth.ErrExpired, renewed or not. Default no limit.
	MaxHold time.Duration `json:"maxHoldMs,omitzero"`

	// Reset is only for Set: zero fields become unset, so that the proposals of processes count for these
	// fields.
	Reset bool `json:"-"`
	// ByOperator says that an operator has set a setting. Only reading fills ByOperator.
	ByOperator bool `json:"byOperator"`
}

// The words for an unset value in stored settings, in proposals of processes, and in arguments
// of pool_set; and the words of a process, Strict or not, for the origin of its proposals. See
// scripts/pool/settings.lua.
const (
	wordUnset   = "-"
	wordAnyWord = "%S+"
	wordAsItIs  = "."
	anyOne      = "%S"
	strictOne   = "[-op]"
)

// words returns the settings in the form of the scripts: policy, cooldown, sharers, bindfor, lease,
// hold.
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

// settingsOf parses the stored settings of a pool or of a resource.
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

// parseOwn reads a resource's own stored settings.
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

// differences returns the fields that are set in both and differ: the name, the value of s, the value of
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

// say returns a text with the fields that differ and both values; "" for none. A field that other leaves
// unset does not differ.
func (s Settings) say(other Settings) string {
	var texts []string
	for _, d := range s.differences(other) {
		texts = append(texts, fmt.Sprintf("%s %s, stored %s", d[0], d[1], d[2]))
	}
	return strings.Join(texts, "; ")
}

// texts returns the values for people, in the order of words; "" for an unset field.
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

// String returns the fields that are set, such as "Cooldown 30s, MaxSharers 2".
func (s Settings) String() string {
	var texts []string
	for i, text := range s.texts() {
		if text != "" {
			texts = append(texts, settingNames[i]+" "+text)
		}
	}
	return strings.Join(texts, ", ")
}

// validate returns a *berth.ConfigError for the first bad value.
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

// opinions returns the process's proposals in the form that scripts compare with the stored
// settings; "" for none.
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

// Set changes the settings of a pool or, if resource is not "", the resource's own settings:
// Cooldown, MaxSharers and BindFor, which leave with the resource. No process reverts an operator's
// settings, with one exception: an Add or a Replace with MaxSharers sets it for its resources that
// have no MaxSharers of their own.
//
// Set takes effect at once, in all processes: the cooldown with the end of present holds, the policy
// with the next grants, BindFor with the next bindings, and limits with the next calls. A raised or
// removed limit reaches calls without a Lease or MaxHold of their own within a minute.
//
// MaxSharers of a pool is set for all present and future resources without a MaxSharers of their own,
// in steps of about 100. No holder loses its hold, and a Reset leaves present resources as they are.
//
// A pool with an operator's settings is never forgotten, until a Set with only Reset. The pool need
// not have resources, so a misspelled name is not an error.
//
// Set returns berth.ErrInvalidConfig for bad arguments, and berth.ErrAbsent if the resource is not in the
// pool, is leaving it or is damaged. If another operator's call has changed the same setting meanwhile,
// Set changes nothing and returns a *berth.OvertakenError, which matches berth.ErrOvertaken. Set also
// returns berth.ErrIncompatible or the server's error. Repeat a Set that failed between its steps over the
// resources.
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

// Settings reads the stored settings of a pool. Settings returns berth.ErrInvalidConfig for a bad
// name, berth.ErrIncompatible, or the server's error.
func (o *Operator) Settings(ctx context.Context, name string) (Settings, error) {
	if o.bad != nil {
		return Settings{}, o.bad
	}
	return o.pools.settings(ctx, name)
}

// settings reads the stored settings of a pool.
func (s *pools) settings(ctx context.Context, name string) (Settings, error) {
	stored, err := s.look.Settings(ctx, name)
	if err != nil {
		return Settings{}, err
	}
	return settingsOf(stored), nil
}
