package scriptkit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

type valueKey struct{}

func TestAttemptsOfOneWindowShareItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := NewRunner(nil, Options{CallTimeout: 1600 * time.Millisecond})
		caller := context.WithValue(context.Background(), valueKey{}, "v")
		begun := time.Now()
		limit := func() context.Context {
			ctx, cancel := r.limit(caller, time.Now(), r.opts.CallTimeout)
			cancel()
			return ctx
		}

		first := limit()
		time.Sleep(100*time.Millisecond - 1)
		last := limit()
		time.Sleep(time.Nanosecond)
		next := limit()

		require.Equal(t, "v", first.Value(valueKey{}))
		require.Equal(t, begun.Add(1600*time.Millisecond), deadline(first))
		require.Equal(t, deadline(first), deadline(last))
		require.Equal(t, begun.Add(1700*time.Millisecond), deadline(next))
		require.NoError(t, last.Err())

		<-last.Done()
		require.Equal(t, 1600*time.Millisecond, time.Since(begun))
		require.Equal(t, context.DeadlineExceeded, first.Err())
		require.NoError(t, next.Err())
		<-next.Done()
		require.Equal(t, 1700*time.Millisecond, time.Since(begun))
	})
}

func TestOtherLimitsAreNotShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := NewRunner(nil, Options{})
		caller, leave := context.WithCancel(t.Context())
		ctx, cancel := r.limit(caller, time.Now(), r.opts.CallTimeout)
		defer cancel()
		leave()
		require.Equal(t, context.Canceled, ctx.Err())

		_, cancel = r.limit(context.Background(), time.Now(), r.opts.CallTimeout)
		defer cancel()
		short, cancel := r.limit(context.Background(), time.Now(), time.Second)
		defer cancel()
		require.Equal(t, time.Now().Add(time.Second), deadline(short))
	})
}

func deadline(ctx context.Context) time.Time {
	d, _ := ctx.Deadline()
	return d
}
