package semaphore

import (
	"github.com/berth-go/berth/internal/claims"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Library is what the client runs its scripts from.
func Library() *scriptkit.Library { return claims.Library() }

// Ticket is when the permit's claim came.
func (p *Permit) Ticket() int64 { return p.hold.Ticket() }
