package row

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/test/bench/contender"
)

// poolSizes are the columns, by how many resources a pool has.
var poolSizes = map[string]struct{ full, smoke int }{
	"1 000 000": {1_000_000, 10_000},
	"10 000":    {10_000, 1000},
	"100":       {100, 100},
}

func poolRows() []Row {
	return []Row{{
		ID: "pool", Title: "Berth's pools of 100, 10 000 and 1 000 000 resources",
		Columns: []string{"1 000 000", "10 000", "100"},
		Metrics: []Metric{{
			ID: "cycles", Title: "allocate and release", Unit: "/s", HigherIsBetter: true, Picture: true,
			Budgets: []Budget{{Column: "1 000 000", Against: []string{"100"}, AtLeast: true, Limit: 0.9}},
		}},
		Notes:   []string{"One worker. Each pool is filled once, before the first round."},
		Measure: measurePool,
	}}
}

func measurePool(ctx context.Context, env *Env, column string) (map[string]float64, error) {
	// All are filled before the first of them is measured.
	pools, err := Kept(env, "pools", func() (map[string]*allocator.Pool[string], func(), error) {
		return fillPools(ctx, env)
	})
	if err != nil {
		return nil, err
	}
	pool, cycles, start := pools[column], 0, time.Now()
	for cycles == 0 || time.Since(start) < env.For {
		resource, err := pool.Allocate(ctx, nil)
		if err != nil {
			return nil, err
		}
		if err := resource.Release(ctx); err != nil {
			return nil, err
		}
		cycles++
	}
	return map[string]float64{"cycles": float64(cycles) / time.Since(start).Seconds()}, nil
}

// fillPools makes and fills all pools. The func removes them.
func fillPools(ctx context.Context, env *Env) (map[string]*allocator.Pool[string], func(), error) {
	space := env.Name(contender.Namespace)
	n, err := contender.OpenNode(env.Addr, node.Config{Namespace: space})
	if err != nil {
		return nil, nil, err
	}
	end := func() {
		n.Close()
		_ = unlink(context.Background(), env.Redis, space)
	}
	pools := map[string]*allocator.Pool[string]{}
	for column, size := range poolSizes {
		pools[column], err = contender.Fill(ctx, n.Node, env.Name("pool"), env.Pick(size.full, size.smoke))
		if err != nil {
			end()
			return nil, nil, err
		}
	}
	return pools, end, nil
}

// unlink removes all keys of a namespace.
func unlink(ctx context.Context, redis rueidis.Client, space string) error {
	var errs []error
	for cursor := uint64(0); ; {
		page, err := redis.Do(ctx, redis.B().Scan().Cursor(cursor).Match(space+":*").Count(1000).Build()).AsScanEntry()
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		if len(page.Elements) > 0 {
			errs = append(errs, redis.Do(ctx, redis.B().Unlink().Key(page.Elements...).Build()).Error())
		}
		if cursor = page.Cursor; cursor == 0 {
			return errors.Join(errs...)
		}
	}
}
