package run

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// fading is a hold with little left, whose first renewal returns an error.
type fading struct {
	berth.Handle
	err error
}

func (f fading) Left() time.Duration         { return time.Second }
func (f fading) Renew(context.Context) error { return f.err }

func TestAHoldThatIsLostBeforeTheStartWasNotAcquired(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		code int
		says string
	}{
		"lost":        {berth.ErrLost, 75, `"gpu" not acquired: lost again before the command could start: berth: lease lost`},
		"expired":     {berth.ErrExpired, 75, "lost again before the command could start"},
		"released":    {berth.ErrReleased, 75, "lost again before the command could start"},
		"unreachable": {errors.New("broken pipe"), 69, "cannot reach the server at here: broken pipe"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &runOptions{sem: "gpu", lease: 10 * time.Second}
			conn := &app.Connection{Address: "here"}
			got, err := o.stand(context.Background(), conn, &spot{
				take: func(context.Context) (berth.Handle, error) { return fading{err: test.err}, nil },
			})
			require.Nil(t, got)
			require.Equal(t, test.code, app.CodeOf(err))
			require.ErrorContains(t, err, test.says)
		})
	}
	o := &runOptions{sem: "gpu", lease: 10 * time.Second}
	got, err := o.stand(context.Background(), nil, &spot{
		take: func(context.Context) (berth.Handle, error) { return fading{}, nil },
	})
	require.NoError(t, err)
	require.Equal(t, fading{}, got)
}

func TestWhoGotNothingIsToldWhoWasInTheWay(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	hold(t, s)
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"--sem", "gpu", "--capacity", "1", "--wait", "12s"}, `^berth: "gpu" not acquired: timed out after [1-9][\d.]*s \(capacity 1, held 1, waiting 0\)\n$`},
		{[]string{"--sem", "gpu", "--capacity", "1", "--try"}, `^berth: "gpu" not acquired: full \(capacity 1, held 1, waiting 0\)\n$`},
		{[]string{"--lock", "gpu", "--wait", "12s"}, `^berth: "gpu" not acquired: timed out after [1-9][\d.]*s \(held by host/one/1 for [\d.m]+s, waiting 0\)\n$`},
		{[]string{"--lock", "gpu", "--try"}, `^berth: "gpu" not acquired: held \(waiting 0\)\n$`},
	} {
		got := apptest.Spawn(t, s.URL(), append(append([]string{"run"}, test.args...), "true")...)
		require.Equal(t, 75, got.Code)
		require.Regexp(t, test.says, got.Err)
	}
}

// hold takes the semaphore and the lock gpu, with a label of its own.
func hold(t *testing.T, s *embedded.Server) {
	t.Helper()
	locks := apptest.LocksOf(t, s, node.Config{Label: "host/one/1"})
	_, err := semaphore.New(locks.Node, "gpu", 1, nil).Acquire(context.Background(), nil)
	require.NoError(t, err)
	_, err = locks.Lock(context.Background(), "gpu", nil)
	require.NoError(t, err)
}
