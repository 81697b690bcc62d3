package allocator

import (
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/node"
)

// Operator has the calls for operators that only pools have: it changes their settings, and shows their resources and bindings. It
// knows no values, so one Operator is for pools of every type, and a pool need not be open
// in this process. It is safe for concurrent use. The calls that all kinds have are those of node.Operator.
type Operator struct {
	pools  *pools
	bad    error // what each call returns; nil for a usable one
	atOnce int   // up to how many resources Inspect reads in one step
}

// NewOperator returns the calls for operators that only pools have. It does no I/O. Of a nil node each call returns a
// *berth.ConfigError.
func NewOperator(n *node.Node) *Operator {
	o := &Operator{atOnce: atOnce}
	_, o.bad = line.Use(n, func(p *line.Process) error {
		o.pools = poolsOf(p, false)
		return nil
	})
	return o
}
