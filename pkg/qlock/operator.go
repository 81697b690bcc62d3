package qlock

import (
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// Operator has the operators' calls that are specific to locks; node.Operator has the calls for all kinds. An
// Operator is safe for concurrent use.
type Operator struct {
	p   *line.Process
	bad error // the error of each call; nil for a usable Operator
}

// NewOperator returns an Operator on a node. NewOperator does no I/O. If the node is nil, each call returns a
// *berth.ConfigError.
func NewOperator(n *node.Node) *Operator {
	o := &Operator{}
	o.p, o.bad = line.Use(n, func(*line.Process) error { return nil })
	return o
}

// Extend adds a time to the deadline of a lock's present hold: whole milliseconds, above 0.
// MaxHold still limits the hold. The holder's handle learns of the new deadline with its next
// heartbeat. Extend returns berth.ErrNotHeld if the lock is free, berth.ErrInvalidConfig, or
// the server's error.
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
