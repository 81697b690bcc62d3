package qlock

// Ticket is when the lock's claim came.
func (l *Lock) Ticket() int64 { return l.hold.Ticket() }

// Complete completes the options of a call, as Lock and TryLock do.
func Complete(l *Locks, opts *LockOptions, wait bool) error {
	_, err := l.options(opts, wait)
	return err
}
