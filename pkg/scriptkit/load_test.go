package scriptkit

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
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
	bubble(t, func(t *testing.T) {
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
	bubble(t, func(t *testing.T) {
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
	bubble(t, func(t *testing.T) {
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
	require.Error(t, second(run(t.Context(), NewRunner(client, Options{}), simple(t), Once)))
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
		bubbleOf(t, name, func(t *testing.T) {
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
	}
}

// Nobody can tell that it was not sent, so it is repeated, and in doubt.
func TestAConnectionThatIsGivenUpByTheCallThatMakesIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
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
		r := must(run(t.Context(), runner, script, Bounded)).in(t)
		require.True(t, r.Unanswered)
		require.Equal(t, 2, dials())
		require.Equal(t, 2*time.Second+20*time.Millisecond, time.Since(begun))
		require.ErrorIs(t, <-first, context.Canceled)
	})
}

// address leads new connections to the last of its servers.
type address struct {
	*testing.T
	serving sync.WaitGroup

	mu      sync.Mutex
	servers []*fakeServer // guarded by mu
	breaks  []time.Duration
	begun   time.Time
}

// lead leads new connections to another server, which says that it has a role and answers all
// scripts the same. The ids of connections begin anew there.
func (a *address) lead(role, answer string) {
	s := &fakeServer{
		hello: func() string { return table("id", "7", "role", role) },
		answer: func(_ int, command []string) string {
			if command[0] == "QUIT" {
				return drop
			}
			return answer
		},
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.servers = append(a.servers, s)
}

func (a *address) client() rueidis.Client {
	return connect(a.T, func() (net.Conn, error) {
		a.mu.Lock()
		s := a.servers[len(a.servers)-1]
		a.mu.Unlock()
		here, there := net.Pipe()
		a.serving.Go(func() { s.serve(there) })
		return here, nil
	})
}

// options note when connections are broken.
func (a *address) options() Options {
	o := exact()
	o.OnBreak = func(count int, _ time.Duration, err error) {
		require.Equal(a, 1, count)
		require.ErrorContains(a, err, "READONLY")
		a.breaks = append(a.breaks, time.Since(a.begun).Round(100*time.Millisecond))
	}
	return o
}

// moving runs a test in virtual time, with an address that leads to a replica.
func moving(t *testing.T, test func(a *address, s *Script)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		a := &address{T: t, begun: time.Now()}
		t.Cleanup(a.serving.Wait) // when the clients are closed
		a.lead("replica", "-READONLY You can't write against a read only replica.\r\n")
		test(a, simple(t))
	})
}

// every has each runner send a script 10 times a second, for a while.
func (a *address) every(s *Script, while time.Duration, runners ...*Runner) {
	for begun := time.Now(); time.Since(begun) < while; time.Sleep(100 * time.Millisecond) {
		for _, r := range runners {
			_, _ = run(a.Context(), r, s, Once)
		}
	}
}

func TestAnAddressThatMovedIsFollowedAfterASecond(t *testing.T) {
	moving(t, func(a *address, s *Script) {
		runner := NewRunner(a.client(), a.options())
		require.ErrorIs(a, second(run(a.Context(), runner, s, Once)), berth.ErrUnavailable)
		a.lead("master", table("ok", "1"))
		reply := must(run(a.Context(), runner, s, UntilDone)).in(a)
		require.False(a, reply.Unanswered, "no call met the end of a connection")
		require.Less(a, time.Since(a.begun), 3*time.Second)
		require.Len(a, a.breaks, 1)
	})
}

func TestAReplicaForGoodIsLeftLessAndLessOften(t *testing.T) {
	moving(t, func(a *address, s *Script) {
		a.every(s, 4*time.Minute, NewRunner(a.client(), a.options()))
		seconds := []time.Duration{1, 3, 7, 15, 31, 63, 123, 183}
		for i := range seconds {
			seconds[i] = seconds[i]*time.Second - 200*time.Millisecond
		}
		require.Equal(a, seconds, a.breaks)
	})
}

func TestAFailoverThatIsOverWithinASecondBreaksNothing(t *testing.T) {
	moving(t, func(a *address, s *Script) {
		runner := NewRunner(a.client(), a.options())
		for range 10 {
			_, _ = run(a.Context(), runner, s, Once)
			time.Sleep(time.Second) // the script succeeds, perhaps on another connection
			runner.moved.Load().Succeeded()
		}
		require.Empty(a, a.breaks)
		_, _ = run(a.Context(), runner, s, Once)
		time.Sleep(time.Second / 2)
		runner.moved.Load().Succeeded() // writes nothing, perhaps
		time.Sleep(time.Second / 2)
		_, _ = run(a.Context(), runner, s, Once)
		require.Len(a, a.breaks, 1)
	})
}

func TestClientsOfOneConnectionBreakItOnce(t *testing.T) {
	moving(t, func(a *address, s *Script) {
		redis := a.client()
		one, other := NewRunner(redis, a.options()), NewRunner(redis, a.options())
		a.every(s, 6*time.Second, one, other)
		require.Len(a, a.breaks, 2)
		a.every(s, 4*time.Second, NewRunner(a.client(), a.options()))
		require.Len(a, a.breaks, 4, "another rueidis client has connections of its own")
	})
}

func TestAPrimaryIsReadOnNewConnections(t *testing.T) {
	moving(t, func(a *address, _ *Script) {
		runner := NewRunner(a.client(), exact())
		a.lead("master", table("1", "0"))
		_, err := runner.Read(a.Context(), "name", From{Primary: true}, Command{Verb: []string{"ZRANGE"}, Keys: []string{"k"}})
		require.NoError(a, err)
	})
}

// clientOf says that a client is of a kind.
type clientOf struct {
	rueidis.Client
	mode rueidis.ClientMode
}

func (c clientOf) Mode() rueidis.ClientMode { return c.mode }

func TestConnectionsAreKept(t *testing.T) {
	moving(t, func(a *address, s *Script) {
		keep := a.options()
		keep.KeepConnections = true
		for _, runner := range []*Runner{
			NewRunner(a.client(), keep),
			NewRunner(clientOf{a.client(), rueidis.ClientModeCluster}, a.options()),
			NewRunner(clientOf{a.client(), rueidis.ClientModeSentinel}, a.options()),
		} {
			a.every(s, 5*time.Second, runner)
		}
		require.Empty(a, a.breaks)
		require.NotContains(a, a.servers[0].seen(), "QUIT")
	})
}

// A proxy may not know HELLO.
func TestConnectionsAreBrokenUnseen(t *testing.T) {
	moving(t, func(a *address, s *Script) {
		a.servers[0].hello = nil
		runner := NewRunner(a.client(), exact())
		_, _ = run(a.Context(), runner, s, Once)
		a.lead("master", table("ok", "1"))
		must(run(a.Context(), runner, s, UntilDone)).in(a)
	})
}
