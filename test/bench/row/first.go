package row

import (
	"context"
	"errors"
	"runtime"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/bench/contender"
)

// allKinds is the column of a process that has a lock, a permit and a resource.
const allKinds = "all kinds"

func firstRows() []Row {
	return []Row{{
		ID: "first", Title: "A process that has just begun: until it has its first lock, and until it has one of each kind",
		Columns: []string{Berth, allKinds},
		Metrics: []Metric{
			{
				ID: "processor", Title: "processor time of the process", Unit: "ms",
				Budgets: []Budget{{Limit: 2}, {Column: allKinds, Limit: 5}},
			},
			{ID: "took", Title: "time", Unit: "ms"},
		},
		Notes: []string{
			"The median of 20 processes of one thread of Go each, from node.New on: the client is connected, the server knows the scripts. \"" +
				allKinds + "\" adds the one resource of its pool.",
		},
		Cold: true, Measure: measureFirst,
	}}
}

// firstJob is the work of a child process: it takes its first lock, or one hold of each kind, and says what that took.
const firstJob = "first"

type firstArgs struct{ Addr, Column, Name string }

type firstTook struct{ Processor, Took time.Duration }

func runFirst(ctx context.Context, p *Parent) error {
	runtime.GOMAXPROCS(1)
	var args firstArgs
	if err := p.Receive(&args); err != nil {
		return err
	}
	redis, err := rueidis.NewClient(contender.Option(args.Addr))
	if err != nil {
		return err
	}
	if err := redis.Do(ctx, redis.B().Ping().Build()).Error(); err != nil {
		return err
	}
	start, before, err := now()
	if err != nil {
		return err
	}
	if err := takeFirst(ctx, redis, args); err != nil {
		return err
	}
	end, after, err := now()
	if err != nil {
		return err
	}
	return p.exchange(firstTook{Processor: after - before, Took: end.Sub(start)})
}

func takeFirst(ctx context.Context, redis rueidis.Client, args firstArgs) error {
	n, err := node.New(redis, node.Config{Namespace: contender.Namespace})
	if err != nil {
		return err
	}
	_, err = qlock.New(n, qlock.Config{}).Lock(ctx, args.Name, nil)
	if err != nil || args.Column != allKinds {
		return err
	}
	_, err = semaphore.New(n, args.Name, contender.Capacity, semaphore.Config{}).Acquire(ctx, nil)
	pool := allocator.New(n, args.Name, allocator.Config[string]{})
	_, added := pool.Add(ctx, contender.Resources(1), nil)
	if err := errors.Join(err, added); err != nil {
		return err
	}
	_, err = pool.Allocate(ctx, nil)
	return err
}

// now is the time, and how long this process has been on a processor.
func now() (at time.Time, processor time.Duration, err error) {
	var usage syscall.Rusage
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Now(), time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), err
}

func measureFirst(ctx context.Context, env *Env, column string) (map[string]float64, error) {
	var processor, took []time.Duration
	for range env.Pick(20, 1) {
		one, err := first(ctx, env, column)
		if err != nil {
			return nil, err
		}
		processor, took = append(processor, one.Processor), append(took, one.Took)
	}
	return map[string]float64{"processor": millis(quantile(processor, 0.5)), "took": millis(quantile(took, 0.5))}, nil
}

// first runs one such process, and kills it: its holds end with their leases.
func first(ctx context.Context, env *Env, column string) (one firstTook, err error) {
	child, err := env.Start(ctx, firstJob, firstArgs{Addr: env.Addr, Column: column, Name: env.Name("first")})
	if err != nil {
		return one, err
	}
	if err := child.Receive(&one); err != nil {
		return one, errors.Join(err, child.Close())
	}
	err = child.Kill()
	_ = child.Close() // its error says that it was killed
	return one, err
}
