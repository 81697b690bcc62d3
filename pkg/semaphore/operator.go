package semaphore

import (
	"context"

	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// Operator has the calls for operators that only semaphores have; the Operator of the node has those of all kinds.
// It is safe for concurrent use.
type Operator struct {
	p   *line.Process
	bad error // what each call returns; nil for a usable one
}

// NewOperator returns the calls for operators that only semaphores have. It does no I/O. Of a nil node each call returns a
// *berth.ConfigError.
func NewOperator(n *node.Node) *Operator {
	o := &Operator{}
	o.p, o.bad = line.Use(n, func(*line.Process) error { return nil })
	return o
}

// Resize stores another capacity; nil options are the zero ones. What is held stays held:
// if that is more than the new capacity, nothing is granted until enough is released.
// Waiting claims that are heavier than the new capacity end with ReasonTooHeavy.
//
// Resize returns berth.ErrInvalidConfig for a bad name or capacity; berth.ErrAbsent if no
// capacity is stored, because nobody has used the semaphore or the server has forgotten
// it; berth.ErrOvertaken if another call has resized it since this one began; berth.ErrIncompatible; or the server's error.
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
