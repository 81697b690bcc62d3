package row

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/rueidis/rueidislock"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/test/bench/contender"
)

func deadRows() []Row {
	return []Row{{
		ID: "dead-holder", Title: "A holder's process is killed: from the end of its lease until the next has the lock",
		Columns: []string{Berth, "redsync", "redislock", "rueidislock"},
		Metrics: []Metric{
			{ID: "p50", Title: "p50", Unit: "ms", Picture: true},
			{ID: "p99", Title: "p99", Unit: "ms", Budgets: []Budget{{Limit: 50}}},
			{ID: "timer", Title: "how late a timer for the same instant was, p99", Unit: "ms"},
		},
		Notes: []string{
			"200 names a round. The holder's process takes 100 names, one every 2 ms, with a lease of 500 ms, and is killed; one waits for each, since some time in the first half of its lease. The lease counts from just before the holder asked.",
			"A wait that has not ended 5 s after the lease counts as that long.",
		},
		Cold: true, Measure: measureDead,
	}}
}

// holderJob is the work of a child process: it takes names and keeps them until it is
// killed. It says of each when it asked for it.
const holderJob = "holder"

// measureLimit is longer than a holder's process lives.
const measureLimit = time.Hour

type holderArgs struct {
	Addr, Column string
	Names        []string
	Lease        time.Duration
}

// took says when a name was asked for, which its holder has now.
type took struct {
	Name string
	At   time.Time
}

func runHolder(ctx context.Context, p *Parent) error {
	var args holderArgs
	if err := p.Receive(&args); err != nil {
		return err
	}
	locker, err := openFixed(args.Column, args.Addr, args.Lease)
	if err != nil {
		return err
	}
	if err := locker(ctx, "first "+args.Names[0]); err != nil { // so that scripts are there, and connections
		return err
	}
	for _, name := range args.Names {
		at := time.Now()
		if err := locker(ctx, name); err != nil {
			return err
		}
		if err := p.Send(took{Name: name, At: at}); err != nil {
			return err
		}
		if err := pause(ctx, 2*time.Millisecond); err != nil {
			return err
		}
	}
	return p.Receive(&proceed{}) // it is killed while it waits
}

// openFixed returns what takes a lock for exactly one lease: nothing renews it before the
// process is killed, so that its end is known.
func openFixed(column, addr string, lease time.Duration) (func(ctx context.Context, name string) error, error) {
	switch column {
	case Berth:
		l, err := contender.OpenLocks(addr, 0, &qlock.LockOptions{Lease: lease, NoRenew: true})
		return func(ctx context.Context, name string) error {
			// What has run out on its way here, as the machine had others to run, is taken again.
			return until(ctx, "take "+name, func() (bool, error) {
				_, err := l.Lock(ctx, name)
				if errors.Is(err, berth.ErrExpired) {
					return false, nil
				}
				return err == nil, err
			})
		}, err
	case "redsync":
		sync := redsync.New(goredis.NewPool(contender.GoRedis(addr)))
		return func(ctx context.Context, name string) error {
			return sync.NewMutex(name, redsync.WithExpiry(lease)).LockContext(ctx)
		}, nil
	case "redislock":
		locks := redislock.New(contender.GoRedis(addr))
		return func(ctx context.Context, name string) error {
			// Under a context without a deadline, Obtain fails where the server's answer
			// takes longer than the lease.
			ctx, cancel := context.WithTimeout(ctx, measureLimit)
			defer cancel()
			_, err := locks.Obtain(ctx, name, lease, nil)
			return err
		}, nil
	case "rueidislock":
		locks, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption: contender.Option(addr), KeyMajority: 1, NoLoopTracking: true,
			KeyValidity: lease, ExtendInterval: lease,
		})
		return func(ctx context.Context, name string) error {
			// WithContext waits for ever for a free lock where the server's answer took
			// longer than TryNextAfter.
			return until(ctx, "take "+name, func() (bool, error) {
				_, _, err := locks.TryWithContext(ctx, name)
				return err == nil, nil
			})
		}, err
	}
	return nil, fmt.Errorf("no contender is called %q", column)
}

func measureDead(ctx context.Context, env *Env, column string) (map[string]float64, error) {
	var late, timers []time.Duration
	for range env.Pick(2, 1) {
		b := batch{env: env, column: column, lease: time.Duration(env.Pick(500, 100)) * time.Millisecond}
		if err := b.run(ctx, env.Pick(100, 5)); err != nil {
			return nil, err
		}
		late, timers = append(late, b.late...), append(timers, b.timers...)
	}
	return map[string]float64{
		"p50": millis(quantile(late, 0.5)), "p99": millis(quantile(late, 0.99)), "timer": millis(quantile(timers, 0.99)),
	}, nil
}

// batch is the names that one dead process held.
type batch struct {
	env    *Env
	column string
	lease  time.Duration

	late, timers []time.Duration
}

// waited is how late, after the end of a lease, a claim was granted and a timer fired.
type waited struct {
	claim, timer time.Duration
	err          error
}

func (b *batch) run(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	locker, err := b.env.Locker(b.column)
	if err != nil {
		return err
	}
	args := holderArgs{Addr: b.env.Addr, Column: b.column, Lease: b.lease}
	for range n {
		args.Names = append(args.Names, b.env.Name("dead"))
	}
	child, err := b.env.Start(ctx, holderJob, args)
	if err != nil {
		return err
	}
	results := make(chan waited, n)
	for range n {
		var t took
		if err := child.Receive(&t); err != nil {
			return errors.Join(err, child.Close())
		}
		end := t.At.Add(b.lease)
		go func() {
			// At any time: what polls must not begin in step with the lease.
			if err := pause(ctx, rand.N(b.lease/2)); err != nil {
				results <- waited{err: err}
				return
			}
			results <- await(ctx, locker, t.Name, end)
		}()
	}
	if err := child.Kill(); err != nil {
		return errors.Join(err, child.Close())
	}
	_ = child.Close() // its error says that it was killed
	for range n {
		w := <-results
		if w.err != nil {
			return w.err
		}
		b.late, b.timers = append(b.late, w.claim), append(b.timers, w.timer)
	}
	return nil
}

// await waits for a name whose holder's lease ends at a time.
func await(ctx context.Context, locker contender.Locker, name string, end time.Time) waited {
	fired := make(chan time.Duration, 1)
	time.AfterFunc(time.Until(end), func() { fired <- time.Since(end) })
	ctx, cancel := context.WithDeadline(ctx, end.Add(patience))
	defer cancel()
	unlock, err := locker.Lock(ctx, name)
	if err != nil && ctx.Err() == nil {
		return waited{err: err}
	}
	w := waited{claim: time.Since(end), timer: <-fired}
	if err == nil {
		w.err = unlock()
	}
	return w
}
