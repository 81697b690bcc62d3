package leader

import (
	"errors"
	"maps"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/qlock"
)

// ErrWanted is the cause of the end of f's context if somebody has asked for leadership: an operator,
// a drain, or a candidate with WantAfter. The process leads until f returns.
var ErrWanted = errors.New("berth: leadership is wanted back")

// Config configures an Election. The zero value is valid.
type Config struct {
	// Lease is the leader's lease: after the leader's death the next process leads within this time. Whole milliseconds, at
	// least 20 ms. Default 5 s, as for locks.
	Lease time.Duration
	// MaxHold limits a term: whole milliseconds, at least 20 ms, or berth.Forever. Default no limit.
	MaxHold time.Duration
	// Priority puts the candidate ahead of all lower priorities in line: -128 to 127. Default 0.
	Priority int
	// WantAfter makes a candidate that has waited at the head of the line for this long ask the leader for
	// leadership, and again after each further WantAfter: at least 20 ms, or berth.Forever for never. Default
	// never.
	WantAfter time.Duration
	// Meta is stored with the candidate and shown by Current and in listings: up to 16 KiB, including one pair of Berth's own
	// with the key berth. Default none.
	Meta map[string]string
	// Attrs is passed to the Logger and the Observer with every event of the candidate, but not sent to the server.
	// Default none.
	Attrs map[string]any
	// KeepWhenWanted lets the context of f go on when leadership is wanted back. f must then watch
	// Election.Wanted, finish its work and return nil. Default false: the context ends with ErrWanted.
	KeepWhenWanted bool
}

// lock returns the options of the candidate's claim.
func (c *Config) lock() qlock.LockOptions {
	return qlock.LockOptions{MaxHold: c.MaxHold, Priority: c.Priority, WantAfter: c.WantAfter, Meta: c.meta(), Attrs: c.Attrs}
}

// meta returns the Meta of the candidate's claim, by which listings recognize candidates.
func (c *Config) meta() map[string]string {
	meta := map[string]string{settings.MetaKey: settings.MetaLeader}
	maps.Copy(meta, c.Meta)
	return meta
}

// validate returns a *berth.ConfigError for the first bad value.
func (c *Config) validate() error {
	if c.Lease == berth.Forever {
		return berth.Invalid("Lease", "it must end: a process that died would lead for good")
	}
	if _, taken := c.Meta[settings.MetaKey]; taken {
		return berth.Invalid("Meta", "the key %q is Berth's own", settings.MetaKey)
	}
	return settings.Claim{Priority: c.Priority, Lease: c.Lease, MaxHold: c.MaxHold, WantAfter: c.WantAfter, Meta: c.meta()}.Validate()
}
