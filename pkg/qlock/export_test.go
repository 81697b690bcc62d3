package qlock

// Complete completes the options of a call, as Lock and TryLock do.
func Complete(l *Locks, opts *LockOptions, wait bool) error {
	_, err := l.options(opts, wait)
	return err
}
