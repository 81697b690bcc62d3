package qlock

import (
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// Operator has the calls for operators that only locks have; the Operator of the node has those of all kinds.
// It is safe for concurrent use.
type Operator struct {
	p   *line.Process
	bad error // what each call returns; nil for a usable one
}

// NewOperator returns the calls for operators that only locks have. It does no I/O. Of a nil node each call returns a
// *berth.ConfigError.
func NewOperator(n *node.Node) *Operator {
	o := &Operator{}
	o.p, o.bad = line.Use(n, func(*line.Process) error { return nil })
	return o
}

// Extend moves the deadline of a lock's hold further off by so much, whoever has it:
// whole milliseconds, above 0. Extend never shortens, and MaxHold still bounds the hold.
// The holder's handle hears of it with its next heartbeat. Extend returns
// berth.ErrNotHeld if the lock is free, berth.ErrInvalidConfig, or the server's error.
func (o *Operator) Extend(ctx context.Context, name string, by time.Duration) error {
	if o.bad != nil {
		return o.bad
	}
	if err := keyspace.CheckName(name); err != nil {
		return err
	}
	if err := checkExtension(by); err != nil {
		return err
	}
	f := o.p.Face(keyspace.Lock)
	entries, fence, err := f.Hold(f.For(ctx, "Extend", name), name)
	if err != nil {
		return err
	}
	if entries == 0 {
		return berth.ErrNotHeld
	}
	return forceExtend(ctx, f, name, fence, by)
}
