package allocator

import (
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/node"
)

// Operator has the operators' calls that are specific to pools: they change settings and list resources and bindings.
// node.Operator has the calls for all kinds. The calls do not use values, so one Operator serves pools of every type, and a
// pool need not be open in this process. An Operator is safe for concurrent use.
type Operator struct {
	pools  *pools
	bad    error // the error of each call; nil for a usable Operator
	atOnce int   // up to how many resources Inspect reads in one step
}

// NewOperator returns an Operator on a node. NewOperator does no I/O. If the node is nil, each call returns a
// *berth.ConfigError.
func NewOperator(n *node.Node) *Operator {
	o := &Operator{atOnce: atOnce}
	_, o.bad = line.Use(n, func(p *line.Process) error {
		o.pools = poolsOf(p, false)
		return nil
	})
	return o
}
