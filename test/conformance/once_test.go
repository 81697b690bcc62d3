package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/once"
)

func onceTests() []test {
	return []test{{name: "once/a period fails, is taken over and is done once", run: period}}
}

func period(w *world) {
	year := once.Config{Every: 8784 * time.Hour, Wait: true, RetryAfter: time.Millisecond, Lease: long}
	jobs := [...]*once.Job{once.New(w.node(0), door, year), once.New(w.node(1), door, year)}
	noPaper := errors.New("no paper")
	begun := make(chan struct{})
	first := testkit.Begin(w.Within(patience), func(ctx context.Context) (once.Result, error) {
		return jobs[0].Do(ctx, func(context.Context, *once.Run) error {
			<-begun
			return noPaper
		})
	})
	w.Await("it runs", func() bool {
		last, err := jobs[1].Last(w.Within(patience))
		require.NoError(w, err)
		return last.Run != nil
	})
	second := testkit.Begin(w.Within(patience), func(ctx context.Context) (once.Result, error) {
		return jobs[1].Do(ctx, func(context.Context, *once.Run) error { return nil })
	})
	close(begun)
	first.Fails(w, noPaper)
	done := second.Wait(w)
	require.Equal(w, once.Ran, done.Status)
	require.Equal(w, 2, done.Attempt)
	seen, err := jobs[0].Do(w.Within(patience), func(context.Context, *once.Run) error { return noPaper })
	require.NoError(w, err)
	require.Equal(w, once.Done, seen.Status)
	require.Equal(w, done.Fence, seen.Fence)
}
