package scriptkit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

func TestAnErrorSaysWhetherTheServerIsUnavailable(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{
		hang:                                                   true,
		drop:                                                   true,
		"-READONLY a replica\r\n":                              true,
		"-LOADING wait\r\n":                                    true,
		"-CLUSTERDOWN no slots\r\n":                            true,
		"-MASTERDOWN the link is down\r\n":                     true,
		"-TRYAGAIN it moves\r\n":                               true,
		"-BUSY a script runs\r\n":                              true,
		"-NOREPLICAS too few\r\n":                              true,
		"-ERR max number of clients reached\r\n":               true,
		"-MISCONF it cannot write its disk\r\n":                true,
		"-WRONGPASS another password\r\n":                      false,
		"-NOPERM no permission\r\n":                            false,
		"-OOM command not allowed\r\n":                         false,
		"-WRONGTYPE another type\r\n":                          false,
		"-ERR unknown command 'EVALSHA'\r\n":                   false,
		"-ERR user_script:3: a mistake script: f_1, on @u\r\n": false,
	} {
		for name, mode := range map[string]Mode{"once": Once, "bounded": Bounded} {
			t.Run(answer+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					server := newFakeServer(t, answers(answer))
					_, err := run(t.Context(), NewRunner(server.client(t), exact()), simple(t), mode)
					require.Error(t, err)
					require.Equal(t, want, errors.Is(err, berth.ErrUnavailable), "%v", err)
					require.NotErrorIs(t, err, context.DeadlineExceeded, "nobody's context has ended")
					require.NotErrorIs(t, err, context.Canceled)
					require.NotContains(t, err.Error(), "context")
				})
			})
		}
	}
}

// A limit of the library's own ends a call as CallTimeout does; the end of the
// caller's own context is the caller's, limit or not.
func TestALimitIsNobodysContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		runner := NewRunner(newFakeServer(t, answers(hang)).client(t), exact())
		for name, limited := range map[string]func() (context.Context, context.CancelFunc){
			"a limit": func() (context.Context, context.CancelFunc) { return Limit(t.Context(), time.Second) },
			"a limit in a limit": func() (context.Context, context.CancelFunc) {
				ctx, cancel := Limit(t.Context(), time.Second)
				inner, stop := Limit(ctx, time.Minute)
				return inner, func() { stop(); cancel() }
			},
			"internal": func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				return Internal(ctx), cancel
			},
		} {
			for _, mode := range []Mode{Once, Bounded, UntilDone} {
				ctx, cancel := limited()
				_, err := run(ctx, runner, simple(t), mode)
				require.ErrorIs(t, err, berth.ErrUnavailable, name)
				require.NotErrorIs(t, err, context.DeadlineExceeded, name)
				require.NotContains(t, err.Error(), "context", name)
				_, err = run(ctx, runner, simple(t), mode) // it has ended before
				require.ErrorIs(t, err, berth.ErrUnavailable, name)
				require.NotErrorIs(t, err, context.DeadlineExceeded, name)
				require.NoError(t, CallersEnd(ctx), name)
				cancel()
			}
		}
		own, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ctx, stop := Limit(own, time.Minute)
		defer stop()
		_, err := run(ctx, runner, simple(t), Bounded)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, berth.ErrUnavailable, "nor was it answered")
		_, err = run(ctx, runner, simple(t), Bounded)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, berth.ErrUnavailable, "the server was not asked")
	})
}
