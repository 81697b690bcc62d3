package qlock

import (
	"cmp"
	"context"
	"time"

	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// Config is what locks are made with. The zero value is valid.
type Config struct {
	// Lease is the lease of locks whose options name none, and the wait lease of all, unless the node's Lease is shorter: a
	// claim whose process is not heard of for so long leaves the line. Whole milliseconds, at least 20 ms. Default 5 s, or the
	// node's Lease if that is shorter.
	Lease time.Duration
	// WarnHeldLongerThan is how long a lock is held before an event reports it as perhaps
	// forgotten; below 0 never. Default the node's.
	WarnHeldLongerThan time.Duration
	// Defaults are the options of claims: of each field that the call does not say. Their
	// MaxWait, WantAfter, RequeueEvery and Attempts do not count for a call that does not wait.
	// Default none.
	Defaults LockOptions
}

// defaultLease is that of locks, which is shorter than that of other primitives.
const defaultLease = 5 * time.Second

// Locks are the locks of a node, by their names. A node may have several Locks: the same locks, with other defaults. They are safe
// for concurrent use.
type Locks struct {
	p        *line.Process
	bad      error // what each call returns; nil for a usable one
	lease    time.Duration
	wait     time.Duration // the wait lease
	warn     time.Duration // see engine.Claim.WarnAfter
	defaults LockOptions   // Config.Defaults, complete
}

// New returns the locks of a node. New does no I/O and always returns Locks: each call returns what
// is wrong with the arguments of New, as a *berth.ConfigError, and so does Check of the node.
func New(n *node.Node, cfg Config) *Locks {
	l := &Locks{}
	l.p, l.bad = line.Use(n, func(p *line.Process) error {
		p.Add(&kind)
		return l.complete(&p.Settings, &cfg)
	})
	return l
}

// complete takes the settings of the node and of cfg.
func (l *Locks) complete(s *settings.Common, cfg *Config) (err error) {
	l.lease = cmp.Or(cfg.Lease, min(defaultLease, s.Lease))
	l.wait, l.warn = min(l.lease, s.Lease), cfg.WarnHeldLongerThan
	if err := settings.WaitLease(l.lease); err != nil {
		return err
	}
	l.defaults, err = l.complement(cfg.Defaults)
	return err
}

// face is the node that the process is now.
func (l *Locks) face() *line.Face { return l.p.Face(keyspace.Lock) }

// held is the hold of the lock that a context was made under, nil for none.
func (l *Locks) held(ctx context.Context, name string) *engine.Hold {
	if l.bad != nil {
		return nil
	}
	return l.face().Engine.Held(ctx, engine.Line{Kind: keyspace.Lock, Name: name})
}
