package qlock

import (
	"github.com/berth-go/berth/internal/claims"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Library is what the client runs its scripts from.
func Library() *scriptkit.Library { return claims.Library() }

// Ticket is when the lock's claim came.
func (l *Lock) Ticket() int64 { return l.hold.Ticket() }
