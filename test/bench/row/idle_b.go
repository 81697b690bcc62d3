package row

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth/test/bench/contender"
)

func idleRows() []Row {
	return []Row{{
		ID: "idle-100000", Title: "100 000 names that were locked once and are idle",
		Columns: []string{Berth},
		Metrics: []Metric{
			{ID: "usage", Title: "a name that is idle, by MEMORY USAGE", Unit: "bytes", Budgets: []Budget{{Limit: 170}}},
			{ID: "empty", Title: "lock + release of further names, beside none", Unit: "/s", HigherIsBetter: true},
			{ID: "cycles", Title: "lock + release of further names, beside them", Unit: "/s", HigherIsBetter: true, Picture: true},
			{ID: "share", Title: "of the rate beside none", Unit: "%", HigherIsBetter: true},
		},
		Notes: []string{"One worker, a new name each time. Berth remembers an idle name for a minute."},
		Cold:  true, Measure: measureIdle,
	}}
}

func measureIdle(ctx context.Context, env *Env, column string) (map[string]float64, error) {
	locker, err := env.Locker(column)
	if err != nil {
		return nil, err
	}
	further := func() (float64, error) {
		values, err := measureCycles(ctx, env, column, 1, true)
		return values["cycles"], err
	}
	if _, err := further(); err != nil { // the first calls bring connections and scripts
		return nil, err
	}
	empty, err := further()
	if err = errors.Join(err, unlink(ctx, env.Redis, contender.Namespace)); err != nil {
		return nil, err
	}
	n, name := env.Pick(100_000, 200), env.Name("idle")
	if err := parallel(n, func(i int) error {
		unlock, err := locker.Lock(ctx, fmt.Sprintf("%s-%06d", name, i))
		if err != nil {
			return err
		}
		return unlock()
	}); err != nil {
		return nil, errors.Join(err, unlink(context.WithoutCancel(ctx), env.Redis, contender.Namespace))
	}
	usage, err := env.usage(ctx, fmt.Sprintf("%s:lock:{%s-%06d}:state", contender.Namespace, name, n/2))
	beside, wrong := further()
	values := map[string]float64{"usage": usage, "empty": empty, "cycles": beside, "share": 100 * beside / empty}
	// The idle names would expire while something else is measured.
	return values, errors.Join(err, wrong, unlink(context.WithoutCancel(ctx), env.Redis, contender.Namespace))
}

// usage is what the server says that a key takes.
func (e *Env) usage(ctx context.Context, key string) (float64, error) {
	n, err := e.Redis.Do(ctx, e.Redis.B().Arbitrary("MEMORY", "USAGE").Keys(key).Build()).AsInt64()
	if err != nil {
		return 0, fmt.Errorf("MEMORY USAGE of %s: %w", key, err)
	}
	return float64(n), nil
}
