package row

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth/test/bench/contender"
)

func processRows() []Row {
	const processes = 100
	return []Row{{
		ID:      "processes-100",
		Title:   "One name, 100 processes of one worker",
		Columns: append([]string{Berth}, peers...),
		Metrics: contendedMetrics(1),
		Notes:   contendedNotes,
		Cold:    true, // every process is new in every round, and warms up by itself
		Measure: func(ctx context.Context, env *Env, column string) (map[string]float64, error) {
			return measureProcesses(ctx, env, column, env.Pick(processes, 4))
		},
	}}
}

func measureProcesses(ctx context.Context, env *Env, column string, processes int) (map[string]float64, error) {
	locker, err := env.Locker(column)
	if err != nil {
		return nil, err
	}
	c := contest{env: env, column: column, locker: locker, name: env.Name("processes"), workers: processes, span: env.For}
	children, err := startWorkers(ctx, env, workerArgs{Column: column, Addr: env.Addr, Name: c.name}, processes)
	defer func() {
		for _, child := range children {
			_ = child.Close() // what went wrong in it was said where it was asked
		}
	}()
	if err != nil {
		return nil, err
	}
	run, err := c.run(ctx, func(context.Context) (func() ([][]turn, error), error) {
		stop := func() ([][]turn, error) {
			// All are stopped before the first is asked, so that all stop together.
			if err := tellAll(children); err != nil {
				return nil, err
			}
			turns := make([][]turn, processes)
			for i, child := range children {
				if err := child.Receive(&turns[i]); err != nil {
					return nil, fmt.Errorf("turns of a child: %w", err)
				}
			}
			return turns, nil
		}
		return stop, tellAll(children)
	})
	if err != nil {
		return nil, err
	}
	return run.metrics(), nil
}

// startWorkers starts processes, a few at a time, and returns when all are ready.
func startWorkers(ctx context.Context, env *Env, args workerArgs, processes int) ([]*Child, error) {
	const atOnce = 20
	var children []*Child
	for ready := 0; ready < processes; {
		for len(children) < min(ready+atOnce, processes) {
			args.Warm = env.Name("warm")
			child, err := env.Start(ctx, workerJob, args)
			if err != nil {
				return children, err
			}
			children = append(children, child)
		}
		for ; ready < len(children); ready++ {
			if err := children[ready].Receive(&proceed{}); err != nil {
				return children, fmt.Errorf("a child that is to be ready: %w", err)
			}
		}
	}
	return children, nil
}

func tellAll(children []*Child) error {
	var errs []error
	for _, child := range children {
		errs = append(errs, child.Send(proceed{}))
	}
	return errors.Join(errs...)
}

// workerJob is the work of a child process: once it is told to, it takes turns at a name
// until it is told to stop, and says what turns it had.
const workerJob = "worker"

type workerArgs struct {
	Column, Addr, Name string
	// Warm is a name of its own, to connect and load scripts by.
	Warm string
}

func runWorker(ctx context.Context, p *Parent) error {
	var args workerArgs
	if err := p.Receive(&args); err != nil {
		return err
	}
	who, err := contender.Find(args.Column)
	if err != nil {
		return err
	}
	locker, err := who.Open(args.Addr)
	if err != nil {
		return err
	}
	defer locker.Close()
	unlock, err := locker.Lock(ctx, args.Warm)
	if err != nil {
		return err
	}
	if err := unlock(); err != nil {
		return err
	}
	if err := p.Send(proceed{}); err != nil {
		return err
	}
	if err := p.Receive(&proceed{}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var turns []turn
	failed := make(chan error, 1)
	go func() {
		var err error
		turns, err = takeTurns(ctx, locker, args.Name, 0)
		failed <- err
	}()
	if err := p.Receive(&proceed{}); err != nil {
		return err
	}
	cancel()
	if err := <-failed; err != nil {
		return err
	}
	return p.Send(turns)
}
