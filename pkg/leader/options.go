package leader

import (
	"errors"
	"maps"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/qlock"
)

// ErrWanted is why the context of f ended where somebody has asked for leadership back: an operator, a
// drain, or a candidate with WantAfter. The process leads until f returns.
var ErrWanted = errors.New("berth: leadership is wanted back")

// Config says how a process stands for election. The zero value is valid.
type Config struct {
	// Lease is the lease of who leads: within it the next one leads after a death. Whole milliseconds, at least 20 ms. Default that of
	// locks, 5 s.
	Lease time.Duration
	// MaxHold bounds a term: whole milliseconds, at least 20 ms, or berth.Forever. Default no bound.
	MaxHold time.Duration
	// Priority moves the candidate ahead of lower ones in line: -128 to 127. Default 0.
	Priority int
	// WantAfter is how long the candidate, once it stands first, waits until it asks for leadership back, and asks
	// again after each further such time: at least 20 ms, or berth.Forever for never. Default never.
	WantAfter time.Duration
	// Meta is stored with the candidate and shown by Current and in listings: up to 16 KiB with a pair of Berth's own, whose key is
	// berth. Default none.
	Meta map[string]string
	// Attrs goes to the Logger and the Observer with every event of the candidate, and not to the server. Default none.
	Attrs map[string]any
	// KeepWhenWanted leaves f its context when leadership is wanted back. f hears of that by Election.Wanted,
	// finishes its work and returns nil. Default false: the context ends with ErrWanted.
	KeepWhenWanted bool
}

// lock are the options of the candidate's claim.
func (c *Config) lock() qlock.LockOptions {
	return qlock.LockOptions{MaxHold: c.MaxHold, Priority: c.Priority, WantAfter: c.WantAfter, Meta: c.meta(), Attrs: c.Attrs}
}

// meta is that of the candidate's claim: listings tell by it that it is one.
func (c *Config) meta() map[string]string {
	meta := map[string]string{settings.MetaKey: settings.MetaLeader}
	maps.Copy(meta, c.Meta)
	return meta
}

// validate returns a *berth.ConfigError for the first value that cannot be.
func (c *Config) validate() error {
	if c.Lease == berth.Forever {
		return berth.Invalid("Lease", "it must end: a process that died would lead for good")
	}
	if _, taken := c.Meta[settings.MetaKey]; taken {
		return berth.Invalid("Meta", "the key %q is Berth's own", settings.MetaKey)
	}
	return settings.Claim{Priority: c.Priority, Lease: c.Lease, MaxHold: c.MaxHold, WantAfter: c.WantAfter, Meta: c.meta()}.Validate()
}
