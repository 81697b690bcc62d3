package semaphore

import (
	"context"

	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// Operator has the operators' calls that are specific to semaphores; node.Operator has the calls for all kinds. An
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

// Resize stores another capacity. Nil opts means zero options. Resize ends no hold: if more
// than the new capacity is held, nothing is granted until enough is released. Waiting claims
// that are heavier than the new capacity end with berth.ReasonTooHeavy.
//
// Resize returns berth.ErrInvalidConfig for a bad name or capacity. It returns berth.ErrAbsent if no capacity is stored,
// because nobody has used the semaphore or the server has forgotten it. It returns berth.ErrOvertaken if another call has
// resized the semaphore since this call began; berth.ErrIncompatible; or the server's error.
func (o *Operator) Resize(ctx context.Context, name string, capacity int, opts *ResizeOptions) error {
	if o.bad != nil {
		return o.bad
	}
	if err := keyspace.CheckName(name); err != nil {
		return err
	}
	if err := checkCapacity(capacity); err != nil {
		return err
	}
	if opts == nil {
		opts = &ResizeOptions{}
	}
	return resize(ctx, o.p.Face(keyspace.Sem), name, capacity, *opts)
}
