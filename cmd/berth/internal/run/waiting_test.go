package run

import (
	"bufio"
	"context"
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestAWaitIsToldEverMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Hour)
		defer cancel()
		var said []string
		line := &spot{crowd: func(ctx context.Context, _ func()) (string, error) {
			deadline, bounded := ctx.Deadline()
			require.True(t, bounded)
			require.Equal(t, app.Times.Look, time.Until(deadline))
			if len(said) == 1 {
				return "", errors.New("no answer")
			}
			return "all held", nil
		}}
		tellWait(ctx, time.Now(), line, func(text string) { said = append(said, text) })
		require.Equal(t, []string{
			"5s (all held)", "15s", "35s (all held)", "1m15s (all held)", "2m35s (all held)", "5m15s (all held)", "10m35s (all held)",
			"21m15s (all held)", "42m35s (all held)", "1h25m (all held)", "2h25m (all held)", "3h25m (all held)", "4h25m (all held)",
		}, said)
	})
}

func TestThoseThatHoldForTheLongestAreNamed(t *testing.T) {
	many := func(n int) (all []berth.Holder) {
		for i := range n {
			all = append(all, berth.Holder{ID: "id", Label: string(rune('a' + i%26)), Held: time.Duration(i) * time.Second})
		}
		return all
	}
	require.Empty(t, heldBy(many(0)))
	require.Equal(t, ", held by b for 1s, a for 0s", heldBy(many(2)))
	require.Equal(t, ", held by e for 4s, d for 3s, c for 2s and others", heldBy(many(5)))
	require.Equal(t, "id", holderName("", "id"))
}

// stderrOf starts a program, and returns the lines that it says on stderr. It is
// ended with the test.
func stderrOf(t *testing.T, cmd *exec.Cmd) *bufio.Scanner {
	t.Helper()
	errs := apptest.Got(cmd.StderrPipe())(t)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	return bufio.NewScanner(errs)
}

func TestWhoWaitsOffATerminalIsTold(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := apptest.Server(t)
	hold(t, s)
	pool := apptest.Filled(t, s, "gpu", "a")
	apptest.Got(pool.Allocate(ctx, &allocator.AllocateOptions{Bind: "anna"}))(t)
	const time = `[\d.m]+s`
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"a semaphore": {[]string{"--sem", "gpu", "--capacity", "1"}, `"gpu" after ` + time + ` \(capacity 1, held 1, waiting \d\), held by host/one/1 for ` + time},
		"a lock":      {[]string{"--lock", "gpu"}, `"gpu" after ` + time + ` \(held by host/one/1 for ` + time + `, waiting \d\)`},
		"a resource":  {[]string{"--pool", "gpu", "--resource", "a"}, `resource a of "gpu" after ` + time + ` \(a is leased\), held by host/one/1 for ` + time},
		"a bound one": {[]string{"--pool", "gpu", "--bind", "anna", "--bind-wait", "forever"}, `"gpu" after ` + time + ` \(1 resource, .*; bound: a is leased\), held by host/one/1 for ` + time},
		"a pool":      {[]string{"--pool", "gpu"}, `"gpu" after ` + time + ` \(1 resource, 0 free, 1 leased, 0 resting, waiting \d\), held by host/one/1 for ` + time},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := stderrOf(t, apptest.Command(t, s.URL(), append(append([]string{"run"}, test.args...), "true")...))
			require.True(t, said.Scan())
			require.Regexp(t, `^berth: still waiting for `+test.says+`$`, said.Text())
		})
	}
	t.Run("quiet", func(t *testing.T) {
		t.Parallel()
		got := apptest.Spawn(t, s.URL(), "run", "--quiet", "--wait", "6s", "--lock", "gpu", "true").Ends(t, 75)
		require.Regexp(t, `^berth: "gpu" not acquired: timed out after [^\n]*\n$`, got.Err)
	})
}

func TestAServerThatRefusesTheWaitIsTold(t *testing.T) {
	t.Parallel()
	const said = "READONLY You can't write against a read only replica."
	cmd := apptest.Command(t, apptest.Refusing(t, said), "run", "--quiet", "--pool", "gpu", "true")
	lines := stderrOf(t, cmd)
	require.True(t, lines.Scan())
	require.Regexp(t, `^berth: warning: for [\dm]+s now the server has not answered for "gpu", or has refused; it is asked again: .*READONLY`, lines.Text())
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM), "it goes on waiting")
	require.True(t, lines.Scan())
	require.Equal(t, "berth: ended by signal: terminated", lines.Text())
}

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

// hold takes the semaphore and the lock gpu, with a label of its own.
func hold(t *testing.T, s *embedded.Server) {
	t.Helper()
	locks := apptest.LocksOf(t, s, node.Config{Label: "host/one/1"})
	apptest.Got(semaphore.New(locks.Node, "gpu", 1, semaphore.Config{}).Acquire(context.Background(), nil))(t)
	apptest.Got(locks.Lock(context.Background(), "gpu", nil))(t)
}
