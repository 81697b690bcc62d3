package run

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

const (
	// waitLease limits how long others wait for a berth that died in line, however long the
	// requested lease is.
	waitLease = 10 * time.Second

	defaultLease     = 10 * time.Second
	defaultLockLease = 5 * time.Second // as in package qlock
)

// holds are what a command runs under: a permit, an allocation, a lock or each of several
// locks.
func holds(held berth.Handle) []berth.Hold {
	switch held := held.(type) {
	case *qlock.LockSet:
		locks := held.Locks()
		each := make([]berth.Hold, len(locks))
		for i, lock := range locks {
			each[i] = lock
		}
		return each
	case berth.Hold:
		return []berth.Hold{held}
	}
	return nil
}

// spot is where one claim waits.
type spot struct {
	take func(ctx context.Context) (berth.Handle, error)
	// crowd says who is there. It is asked while the claim waits, and after it has gone: settle then closes the node.
	crowd func(ctx context.Context, settle func()) (string, error)
	// holders are those that hold; nil where the crowd tells of them.
	holders func(ctx context.Context) []berth.Holder
	rests   bool // what is not held need not be free, so that the crowd is always told
}

// acquire waits for what the flags ask for.
func (o *runOptions) acquire(ctx context.Context, conn *app.Connection, label string, notes *notes) (berth.Handle, error) {
	n, err := conn.Node(node.Config{
		Label: label, Lease: min(o.lease, waitLease), Observer: notes.observer(o.quiet),
		WarnHeldLongerThan: -1, // a command may take its time
	})
	if err != nil {
		return nil, err
	}
	read, err := conn.Reader()
	if err != nil {
		return nil, err
	}
	if o.once.name != "" {
		return o.period(ctx, conn, n, read, label, notes)
	}
	ctx = berth.WithOwner(ctx, o.owner)
	var line *spot
	switch o.what() {
	case "--lock":
		line = o.lines(n, read, label)
	case "--pool":
		line, err = o.allocations(ctx, n, read)
	default:
		line, err = o.permits(ctx, conn, n, read)
	}
	if err != nil {
		return nil, err
	}
	if !o.quiet {
		waited := listOf(o.names())
		if o.key != "" {
			waited = place(o.pool, o.key)
		}
		told, granted := context.WithCancel(ctx)
		defer granted()
		go tellWait(told, time.Now(), line, func(text string) { notes.say("still waiting for %s after %s", waited, text) })
	}
	held, err := o.stand(ctx, conn, line)
	return held, app.InFlags(err, "capacity", "--capacity")
}

// stand waits in a line. When it returns what is held, at least half of its lease
// is left.
func (o *runOptions) stand(ctx context.Context, conn *app.Connection, line *spot) (berth.Handle, error) {
	h, err := line.take(ctx)
	if err != nil {
		return nil, o.notAcquired(ctx, conn, line, err)
	}
	if err := o.secure(ctx, h); err != nil {
		return nil, notStarted(conn, o.names(), err)
	}
	return h, nil
}

// secure sees to it that at least half of the lease is left. A first grant is no longer than the wait
// lease, whatever the lease.
func (o *runOptions) secure(ctx context.Context, h berth.Handle) error {
	span := o.lease
	if o.maxHold != 0 {
		span = min(span, o.maxHold)
	}
	if h.Left() < span/2 {
		return h.Renew(ctx)
	}
	return nil
}

// permits is the line of a semaphore.
func (o *runOptions) permits(ctx context.Context, conn *app.Connection, n *node.Node, read *inspect.Reader) (_ *spot, err error) {
	capacity := o.capacity
	if capacity == 0 {
		if capacity, err = o.stored(ctx, conn, read); err != nil {
			return nil, err
		}
	}
	sem := semaphore.New(n, o.sem, capacity, semaphore.Config{})
	take := sem.Acquire
	if o.try {
		take = sem.TryAcquire
	}
	return &spot{
		take: func(ctx context.Context) (berth.Handle, error) {
			return take(ctx, &semaphore.AcquireOptions{
				Weight: o.weight, Priority: o.priority, Lease: o.lease, NoRenew: o.noRenew,
				MaxHold: o.maxHold, MaxWait: o.wait, Meta: o.meta,
			})
		},
		crowd: func(ctx context.Context, settle func()) (string, error) {
			settle()
			n, err := read.Name(ctx, keyspace.Sem, o.sem)
			return fmt.Sprintf("capacity %d, held %d, waiting %d", n.Capacity, n.Held, n.Waiting) + paused(n), err
		},
		holders: func(ctx context.Context) []berth.Holder { return lookedAt(ctx, read, keyspace.Sem, o.sem) },
	}, nil
}

// stored is the capacity of the semaphore, where the flags give none.
func (o *runOptions) stored(ctx context.Context, conn *app.Connection, read *inspect.Reader) (int, error) {
	if o.wait > 0 {
		bounded, stop := context.WithTimeoutCause(ctx, o.wait, fmt.Errorf("no answer within %s", o.wait))
		defer stop()
		ctx = bounded
	}
	n, err := read.Name(ctx, keyspace.Sem, o.sem)
	switch {
	case err != nil:
		return 0, app.Unreachable(conn.Address, err)
	case n.Capacity == 0:
		return 0, app.Usage("--capacity N is missing: no capacity of %q is stored in namespace %q", o.sem, conn.Namespace)
	case o.weight > n.Capacity:
		return 0, berth.Invalid("--weight", "%d is above the stored capacity, %d", o.weight, n.Capacity)
	}
	return n.Capacity, nil
}

// lines is the line of a lock, or of several.
func (o *runOptions) lines(n *node.Node, read *inspect.Reader, label string) *spot {
	locks := qlock.New(n, qlock.Config{Lease: min(o.lease, waitLease)})
	return &spot{
		take: func(ctx context.Context) (berth.Handle, error) {
			return o.lock(ctx, locks, &qlock.LockOptions{
				Access: wordOf(accesses, o.access), Conflict: wordOf(conflicts, o.conflict),
				Priority: o.priority, Lease: o.lease, NoRenew: o.noRenew,
				MaxHold: o.maxHold, MaxWait: o.wait, Meta: o.meta,
			})
		},
		crowd: func(ctx context.Context, settle func()) (string, error) {
			settle()
			return o.lockers(ctx, read, label)
		},
	}
}

// lock takes the lock, or all of several.
func (o *runOptions) lock(ctx context.Context, locks *qlock.Locks, opts *qlock.LockOptions) (berth.Handle, error) {
	switch one := len(o.locks) == 1; {
	case one && o.try:
		return locks.TryLock(ctx, o.locks[0], opts)
	case one:
		return locks.Lock(ctx, o.locks[0], opts)
	case o.try:
		return locks.TryLockAll(ctx, o.locks, opts)
	}
	return locks.LockAll(ctx, o.locks, opts)
}

// lockers says who holds the locks; of several only those that somebody else holds, or that are paused.
func (o *runOptions) lockers(ctx context.Context, read *inspect.Reader, label string) (string, error) {
	var texts []string
	names := o.names()
	for _, name := range names {
		n, err := read.Name(ctx, keyspace.Lock, name)
		if err != nil {
			return "", err
		}
		says := fmt.Sprintf("waiting %d", n.Waiting) + paused(n)
		switch l := n.Lock; {
		case l != nil:
			says = fmt.Sprintf("held by %s for %s, ", holderName(l.Label, l.Claim), text.Human(n.Oldest)) + says
		case n.Pause == nil:
			says = "free by now, " + says
		}
		switch {
		case len(names) == 1:
			return says, nil
		case n.Lock == nil && n.Pause != nil, n.Lock != nil && n.Lock.Label != label: // and not by this command, which waits for the others
			texts = append(texts, fmt.Sprintf("%q %s", name, says))
		}
	}
	if len(texts) == 0 {
		return "all free by now", nil
	}
	return strings.Join(texts, "; "), nil
}

// listOf is how names are said in a line.
func listOf(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return strings.Join(quoted, ", ")
}

// notStarted gives the error of the renewal before the start its exit code. A hold that ended
// before it could be used counts as not acquired: another try may succeed.
func notStarted(conn *app.Connection, names []string, err error) error {
	if errors.Is(err, berth.ErrNotHeld) || errors.Is(err, berth.ErrReleased) {
		return app.Exit(app.ExitNotAcquired, fmt.Errorf("%s not acquired: lost again before the command could start: %w", listOf(names), err))
	}
	return app.Unreachable(conn.Address, err)
}

// notAcquired gives the error of an acquire its exit code, and says who is in the
// way where others are the reason and the error does not know.
func (o *runOptions) notAcquired(ctx context.Context, conn *app.Connection, line *spot, err error) error {
	var refused *berth.AcquireError
	switch {
	case errors.Is(err, berth.ErrAbsent):
		return app.Exit(app.ExitAbsent, app.NotInPool(o.pool, o.key, conn.Namespace))
	case errors.As(err, &refused) && refused.Reason == berth.ReasonFailed:
		return notStarted(conn, []string{refused.Name}, refused.Cause) // of several locks one may be lost while others are waited for
	case !errors.As(err, &refused):
		return err
	}
	if refused.Reason == berth.ReasonGone && refused.Cause == nil {
		err = fmt.Errorf("%w: somebody else has taken it out of the line", err)
	}
	if errors.Is(err, berth.ErrBusy) && refused.Pause == nil && (refused.Held == 0 || line.rests) {
		ctx, cancel := context.WithTimeout(ctx, app.Times.Look)
		defer cancel()
		crowd, failed := line.crowd(ctx, func() { conn.Settle(ctx) }) // so that the claim itself is not counted
		switch {
		case failed != nil:
		case strings.HasSuffix(err.Error(), ")"): // it counts already
			err = fmt.Errorf("%w; %s", err, crowd)
		default:
			err = fmt.Errorf("%w (%s)", err, crowd)
		}
	}
	return app.Exit(app.ExitNotAcquired, err)
}
