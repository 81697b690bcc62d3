package inspect_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// claims are those of all pages, with the kind, the name and what they do, sorted.
func (w *world) claims(f inspect.ClaimFilter, most int) (all []string) {
	w.T.Helper()
	ids := map[string]bool{}
	for cursor := ""; ; {
		page, err := w.look.Claims(context.Background(), f, cursor, most)
		require.NoError(w.T, err)
		require.Empty(w.T, page.Problems)
		require.LessOrEqual(w.T, len(page.Items), most)
		require.False(w.T, page.Moving)
		require.False(w.T, page.Partial)
		for _, c := range page.Items {
			require.False(w.T, ids[c.ID()], "each once")
			ids[c.ID()] = true
			what := "holds"
			if c.Waiter != nil {
				what = "waits"
			}
			require.Equal(w.T, time.Now().UnixMilli()-c.For().Milliseconds(), c.Since().UnixMilli())
			all = append(all, fmt.Sprintf("%s %s %s", c.Kind, c.Name, what))
		}
		if cursor = page.Next; cursor == "" {
			slices.Sort(all)
			return all
		}
	}
}

func TestClaimsAreReadInPages(t *testing.T) {
	inWorld(t, func(w *world) {
		alpha, beta := w.process("host-a/worker"), w.process("host-b/worker")
		meta := map[string]string{"job": "7", "step": "fetch"}
		alpha.permitFor("order-1", "gpu", 3, &semaphore.AcquireOptions{Weight: 2})
		alpha.permit("gpu", 3, &semaphore.AcquireOptions{Meta: meta})
		for range 3 {
			beta.awaitPermit("gpu", 3, nil)
			w.Advance(ms)
		}
		alpha.lock("nightly", "order-1", nil)
		for range 3 {
			alpha.lock("nightly", "order-1", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		}
		beta.awaitLock("nightly", "order-2", &qlock.LockOptions{Meta: meta})
		beta.lock("thin", "", nil)
		alpha.filled("a")
		pool := beta.pool(allocator.PoolConfig[string]{})
		beta.take(pool, nil)
		beta.await(pool, nil)
		w.Do("SET", "berth:lock:{idle}:state", fmt.Sprintf("%016d", time.Now().UnixMicro()))
		w.Advance(ms)

		times := func(n int, what string) []string { return slices.Repeat([]string{what}, n) }
		all := slices.Concat(times(4, "lock nightly holds"), times(1, "lock nightly waits"), times(1, "lock thin holds"),
			times(1, "pool proxies holds"), times(1, "pool proxies waits"), times(2, "sem gpu holds"), times(3, "sem gpu waits"))
		for _, most := range []int{1, 2, 3, 5, 100} {
			require.Equal(w.T, all, w.claims(inspect.ClaimFilter{}, most), "%d a page", most)
		}
		waits := slices.DeleteFunc(slices.Clone(all), func(c string) bool { return c[len(c)-5:] != "waits" })
		for name, test := range map[string]struct {
			f    inspect.ClaimFilter
			want []string
		}{
			"kinds":      {inspect.ClaimFilter{Kinds: []keyspace.Kind{keyspace.Pool}}, []string{"pool proxies holds", "pool proxies waits"}},
			"node":       {inspect.ClaimFilter{Node: alpha.ID()}, append(times(4, "lock nightly holds"), times(2, "sem gpu holds")...)},
			"owner":      {inspect.ClaimFilter{Owner: "order-1"}, append(times(4, "lock nightly holds"), "sem gpu holds")},
			"label":      {inspect.ClaimFilter{Label: "host-a/worker"}, append(times(4, "lock nightly holds"), times(2, "sem gpu holds")...)},
			"labels":     {inspect.ClaimFilter{Label: "host-*"}, all},
			"meta":       {inspect.ClaimFilter{Meta: map[string]string{"job": "7"}}, []string{"lock nightly waits", "sem gpu holds"}},
			"other meta": {inspect.ClaimFilter{Meta: map[string]string{"job": "7", "step": ""}}, nil},
			"waits":      {inspect.ClaimFilter{Waiting: true}, waits},
			"both":       {inspect.ClaimFilter{Waiting: true, Holding: true}, all},
			"several":    {inspect.ClaimFilter{Holding: true, Label: "host-b*", Kinds: []keyspace.Kind{keyspace.Lock}}, []string{"lock thin holds"}},
		} {
			for _, most := range []int{1, 100} {
				require.Equal(w.T, test.want, w.claims(test.f, most), name)
			}
		}
		_, err := w.look.Claims(context.Background(), inspect.ClaimFilter{Kinds: []keyspace.Kind{"x"}}, "", 0)
		require.ErrorIs(w.T, err, berth.ErrInvalidConfig)
		for _, cursor := range []string{"x", "e30", "eyJ2IjoxLCJpbiI6IngifQ"} {
			_, err = w.look.Claims(context.Background(), inspect.ClaimFilter{}, cursor, 0)
			require.ErrorIs(w.T, err, berth.ErrInvalidConfig, cursor)
		}
	})
}

func TestADamagedClaimIsOneOfTheProblems(t *testing.T) {
	inWorld(t, func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		l := alpha.lock("a", "", nil)
		beta.awaitLock("a", "", nil)
		alpha.lock("b", "", nil)
		alpha.lock("c", "", nil)
		w.Advance(ms)
		w.Do("HSET", "berth:lock:{a}:state", "c:"+l.ID(), "h rubbish")
		w.Do("SET", "berth:lock:{c}:state", "rubbish")
		page, err := w.look.Claims(context.Background(), inspect.ClaimFilter{}, "", 0)
		require.NoError(w.T, err)
		require.True(w.T, page.Partial)
		require.Len(w.T, page.Problems, 2)
		var got []string
		for _, c := range page.Items {
			got = append(got, c.Name)
		}
		slices.Sort(got)
		require.Equal(w.T, []string{"a", "b"}, got, "who waits for a, and who holds b")
	})
}
