package scriptkit

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// clusterOf is a client that knows the given nodes.
type clusterOf struct {
	rueidis.Client
	nodes map[string]rueidis.Client
}

func (c clusterOf) Nodes() map[string]rueidis.Client { return c.nodes }

func twoScripts(t testing.TB) []*Script {
	t.Helper()
	return []*Script{script(Script{Name: "a", Commands: []string{"TIME"}}, `redis.call("TIME") return {"ok"}`), script(Script{Name: "b"}, `local x = 1 return {"ok"}`)}
}

func TestLoadReachesEveryNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one, _ := embedded(t)
		other, _ := embedded(t)
		scripts := twoScripts(t)
		runner := NewRunner(clusterOf{nodes: map[string]rueidis.Client{"one": one, "two": other}}, Options{})
		require.NoError(t, runner.Load(t.Context(), scripts...))
		for _, node := range []rueidis.Client{one, other} {
			known, err := node.Do(t.Context(), node.B().ScriptExists().Sha1(scripts[0].SHA, scripts[1].SHA).Build()).AsIntSlice()
			require.NoError(t, err)
			require.Equal(t, []int64{1, 1}, known)
		}
	})
}

func TestLoadNamesTheNodesThatFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scripts := twoScripts(t)
		good := func(_ int, command []string) string {
			for _, s := range scripts {
				if command[2] == s.Source() {
					return "$40\r\n" + s.SHA + "\r\n"
				}
			}
			return "-ERR another command\r\n"
		}
		servers := map[string]*fakeServer{
			"denying": newFakeServer(t, answers("-NOPERM this user has no permissions to run the 'script|load' command\r\n")),
			"good":    newFakeServer(t, good),
			"silent":  newFakeServer(t, answers(hang)),
			"strange": newFakeServer(t, answers("$3\r\nabc\r\n")),
		}
		nodes := make(map[string]rueidis.Client)
		for name, server := range servers {
			nodes[name] = server.client(t)
		}
		begun := time.Now()
		err := NewRunner(clusterOf{nodes: nodes}, Options{}).Load(t.Context(), scripts...)
		require.Equal(t, 3*time.Second, time.Since(begun))
		require.EqualError(t, err, "berth: script a: SCRIPT LOAD on denying: the ACL of this user lacks something that the script needs "+
			"(EVALSHA, EVAL and what it calls: TIME): NOPERM this user has no permissions to run the 'script|load' command\n"+
			"berth: script a: SCRIPT LOAD on silent: no answer in time\n"+
			"berth: script a: SCRIPT LOAD on strange: the server says its SHA is abc instead of "+scripts[0].SHA)
		require.Equal(t, []string{"SCRIPT", "SCRIPT"}, servers["good"].seen())
		require.Equal(t, []string{"SCRIPT"}, servers["denying"].seen())
	})
}

func TestLoadEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeServer(t, answers(hang)).client(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		err := NewRunner(clusterOf{nodes: map[string]rueidis.Client{"one": client}}, Options{}).Load(ctx, twoScripts(t)...)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(begun))
	})
}

// redialed is a client whose connection has broken, and to make another one takes it a
// second.
func redialed(t *testing.T) (client rueidis.Client, dials func() int) {
	t.Helper()
	server := newFakeServer(t, answers(drop, table("ok", "1")))
	var made atomic.Int64
	client = connect(t, func() (net.Conn, error) {
		if made.Add(1) > 1 {
			<-time.After(time.Second)
		}
		here, there := net.Pipe()
		server.wg.Go(func() { server.serve(there) })
		return here, nil
	})
	_, err := run(t.Context(), NewRunner(client, Options{}), simple(t), Once)
	require.Error(t, err)
	return client, func() int { return int(made.Load()) - 1 }
}

// rueidis would make a connection, and break it off for all who wait for it.
func TestALoadWhoseContextHasEndedConnectsNobody(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		internal bool
		text     string
	}{
		"the caller's": {false, "berth: script a: context canceled"},
		"nobody's":     {true, "berth: script a: no answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, dials := redialed(t)
				runner := NewRunner(clusterOf{client, map[string]rueidis.Client{"one": client}}, Options{})
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if tt.internal {
					ctx = Internal(ctx)
				}
				scripts, loaded := twoScripts(t), make(chan error, 1)
				go func() { loaded <- runner.Load(ctx, scripts...) }()
				synctest.Wait()
				before := dials()
				_, other := run(t.Context(), runner, simple(t), Once)
				err := <-loaded
				require.NoError(t, other)
				require.Zero(t, before)
				require.EqualError(t, err, tt.text)
				require.False(t, MaybeRan(err))
				require.Equal(t, !tt.internal, errors.Is(err, context.Canceled))
			})
		})
	}
}

// Nobody can tell that it was not sent, so it is repeated, and in doubt.
func TestAConnectionThatIsGivenUpByTheCallThatMakesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, dials := redialed(t)
		runner := NewRunner(client, exact())
		ctx, cancel := context.WithCancel(t.Context())
		script, first := simple(t), make(chan error, 1)
		go func() {
			_, err := run(ctx, runner, script, Bounded)
			first <- err
		}()
		synctest.Wait()
		time.AfterFunc(500*time.Millisecond, cancel)
		begun := time.Now()
		r, err := run(t.Context(), runner, script, Bounded)
		require.NoError(t, err)
		require.True(t, r.Unanswered)
		require.Equal(t, 2, dials())
		require.Equal(t, 2*time.Second+20*time.Millisecond, time.Since(begun))
		require.ErrorIs(t, <-first, context.Canceled)
	})
}
