package row

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/test/bench/contender"
)

// pause waits for d, or returns the error of a ctx that ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// until asks every few milliseconds until it is so. It fails after a minute.
func until(ctx context.Context, what string, so func() (bool, error)) error {
	for end := time.Now().Add(time.Minute); ; {
		if ok, err := so(); ok || err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: not within a minute", what)
		}
		if err := pause(ctx, 2*time.Millisecond); err != nil {
			return err
		}
	}
}

// parallel calls f for 0 to n-1, by a few goroutines, and returns the first error.
func parallel(n int, f func(i int) error) error {
	const workers = 64
	var wg sync.WaitGroup
	errs := make(chan error, workers)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				if err := f(i); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// silent is a wait lease of which no heartbeat is due while something is measured.
const silent = 5 * time.Minute

// openLocker opens a locker that is not the row's own.
func openLocker(column, addr string) (contender.Locker, error) {
	c, err := contender.Find(column)
	if err != nil {
		return nil, err
	}
	return c.Open(addr)
}

// openLeased is openLocker, for Berth's with another wait lease than the default if one
// is given.
func openLeased(column, addr string, lease time.Duration) (contender.Locker, error) {
	if lease == 0 {
		return openLocker(column, addr)
	}
	return contender.OpenLocks(addr, lease, nil)
}

// queued waits until n claims of Berth's stand in line for a name. meanwhile, if given, is
// called again and again until then, and ends it by an error.
func (e *Env) queued(ctx context.Context, name string, n int, meanwhile func() error) error {
	reader, err := inspect.New(e.Redis, inspect.Config{Namespace: contender.Namespace})
	if err != nil {
		return err
	}
	return until(ctx, fmt.Sprintf("%d in line", n), func() (bool, error) {
		if meanwhile != nil {
			if err := meanwhile(); err != nil {
				return false, err
			}
		}
		seen, err := reader.Name(ctx, keyspace.Lock, name)
		return seen.Waiting == n, err
	})
}

// connections is how many the server has.
func (e *Env) connections(ctx context.Context) (float64, error) {
	return e.info(ctx, "clients", "connected_clients")
}

// info sums up fields of a section of INFO.
func (e *Env) info(ctx context.Context, section string, fields ...string) (float64, error) {
	text, err := e.Redis.Do(ctx, e.Redis.B().Info().Section(section).Build()).ToString()
	if err != nil {
		return 0, fmt.Errorf("INFO %s: %w", section, err)
	}
	sum, found := 0.0, 0
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		for _, field := range fields {
			if value, ok := strings.CutPrefix(lines.Text(), field+":"); ok {
				n, err := strconv.ParseFloat(value, 64)
				if err != nil {
					return 0, fmt.Errorf("INFO %s: %w", section, err)
				}
				sum, found = sum+n, found+1
			}
		}
	}
	if found != len(fields) {
		return 0, fmt.Errorf("INFO %s has %d of %v", section, found, fields)
	}
	return sum, nil
}

// idle is what the server does, per second, while nobody calls anything.
type idle struct {
	commands, scripts float64
	// busy is the server's time on a processor, in ms.
	busy float64
}

// idle looks at the server for so long.
func (e *Env) idle(ctx context.Context, window time.Duration) (idle, error) {
	read := func() (counts Counts, cpu float64, at time.Time, err error) {
		if counts, err = e.Counts(ctx); err != nil {
			return nil, 0, time.Time{}, err
		}
		cpu, err = e.info(ctx, "cpu", "used_cpu_sys", "used_cpu_user")
		return counts, cpu, time.Now(), err
	}
	before, cpuBefore, start, err := read()
	if err != nil {
		return idle{}, err
	}
	if err := pause(ctx, window); err != nil {
		return idle{}, err
	}
	after, cpu, end, err := read()
	if err != nil {
		return idle{}, err
	}
	diff, seconds := after.Since(before), end.Sub(start).Seconds()
	return idle{
		commands: diff.Commands() / seconds, scripts: diff.Scripts() / seconds,
		busy: (cpu - cpuBefore) * 1000 / seconds,
	}, nil
}
