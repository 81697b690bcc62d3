package semaphore

import (
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Library is what the client runs its scripts from.
func Library() *scriptkit.Library { return line.Library() }

// Ticket is when the permit's claim came.
func (p *Permit) Ticket() int64 { return p.hold.Ticket() }

// Operator is that of the client.
func (s *Semaphore) Operator() *Operator { return s.client.Operator() }
