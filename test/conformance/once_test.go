package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
)

func onceTests() []test {
	return []test{{name: "once/a period fails, is taken over and is done once", run: period}}
}

func period(w *world) {
	jobs := two(w, func(redis rueidis.Client) (*once.Client, error) {
		return once.New(redis, qlock.Config{Namespace: w.ns, Lease: long})
	})
	year := once.Options{Every: 8784 * time.Hour, Wait: true, RetryAfter: time.Millisecond}
	noPaper := errors.New("no paper")
	begun := make(chan struct{})
	first := testkit.Begin(w.Within(patience), func(ctx context.Context) (once.Result, error) {
		return jobs[0].Do(ctx, door, year, func(context.Context, *once.Run) error {
			<-begun
			return noPaper
		})
	})
	w.Await("it runs", func() bool {
		last, err := jobs[1].Last(w.Within(patience), door)
		require.NoError(w, err)
		return last.Run != nil
	})
	second := testkit.Begin(w.Within(patience), func(ctx context.Context) (once.Result, error) {
		return jobs[1].Do(ctx, door, year, func(context.Context, *once.Run) error { return nil })
	})
	close(begun)
	first.Fails(w, noPaper)
	done := second.Wait(w)
	require.Equal(w, once.Ran, done.Status)
	require.Equal(w, 2, done.Attempt)
	seen, err := jobs[0].Do(w.Within(patience), door, year, func(context.Context, *once.Run) error { return noPaper })
	require.NoError(w, err)
	require.Equal(w, once.Done, seen.Status)
	require.Equal(w, done.Fence, seen.Fence)
}
