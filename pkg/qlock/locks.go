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

// Config configures Locks. The zero value is valid.
type Config struct {
	// Lease is the default lease of locks. It is also their wait lease, unless the node's Lease is shorter: a waiting claim
	// leaves the line if its process sends no heartbeat for this long. Whole milliseconds, at least 20 ms. Default 5 s, or the
	// node's Lease if that is shorter.
	Lease time.Duration
	// WarnHeldLongerThan is how long a lock is held before an event reports it as perhaps
	// forgotten; below 0 never. Default the node's value.
	WarnHeldLongerThan time.Duration
	// Defaults are used for each field that a call's LockOptions leave zero. A call that does not
	// wait ignores their MaxWait, WantAfter, RequeueEvery and Attempts. Default none.
	Defaults LockOptions
}

// defaultLease is the default lease of locks, which is shorter than that of other primitives.
const defaultLease = 5 * time.Second

// Locks are the locks of a node, by name. A node may have several Locks, which give access to the same locks with different
// defaults. Locks are safe for concurrent use.
type Locks struct {
	p        *line.Process
	bad      error // the error of each call; nil for usable Locks
	lease    time.Duration
	wait     time.Duration // the wait lease
	warn     time.Duration // see engine.Claim.WarnAfter
	defaults LockOptions   // Config.Defaults, complete
}

// New returns the locks of a node. New does no I/O and always returns Locks. If an argument is bad,
// each call of the Locks, and Check of the node, returns a *berth.ConfigError.
func New(n *node.Node, cfg Config) *Locks {
	l := &Locks{}
	l.p, l.bad = line.Use(n, func(p *line.Process) error {
		p.Add(&kind)
		return l.complete(&p.Settings, &cfg)
	})
	return l
}

// complete takes over the settings of the node and of cfg.
func (l *Locks) complete(s *settings.Common, cfg *Config) (err error) {
	l.lease = cmp.Or(cfg.Lease, min(defaultLease, s.Lease))
	l.wait, l.warn = min(l.lease, s.Lease), cfg.WarnHeldLongerThan
	if err := settings.WaitLease(l.lease); err != nil {
		return err
	}
	l.defaults, err = l.complement(cfg.Defaults)
	return err
}

// face returns the process's present node, as locks see it.
func (l *Locks) face() *line.Face { return l.p.Face(keyspace.Lock) }

// held returns the hold of the lock that ctx was made under, nil for none.
func (l *Locks) held(ctx context.Context, name string) *engine.Hold {
	if l.bad != nil {
		return nil
	}
	return l.face().Engine.Held(ctx, engine.Line{Kind: keyspace.Lock, Name: name})
}
