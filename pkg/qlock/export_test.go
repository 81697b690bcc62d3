package qlock

import (
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Library is what the client runs its scripts from.
func Library() *scriptkit.Library { return line.Library() }

// Ticket is when the lock's claim came.
func (l *Lock) Ticket() int64 { return l.hold.Ticket() }

// Complete completes the options of a call, as Lock and TryLock do.
func (c *Client) Complete(opts *LockOptions, wait bool) error {
	_, err := c.options(opts, wait)
	return err
}
