package scriptkit

import (
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

const readOnly = "-READONLY You can't write against a read only replica.\r\n"

// address leads new connections to the last of its servers.
type address struct {
	*testing.T
	serving sync.WaitGroup

	mu      sync.Mutex
	servers []*fakeServer // guarded by mu
	breaks  []time.Duration
	begun   time.Time
}

// newAddress leads to a replica.
func newAddress(t *testing.T) *address {
	t.Helper()
	a := &address{T: t, begun: time.Now()}
	t.Cleanup(a.serving.Wait) // when the clients are closed
	a.lead("replica", readOnly)
	return a
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

// moving runs a test in virtual time.
func moving(t *testing.T, test func(a *address, s *Script)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(newAddress(t), simple(t)) })
}

// every sends a script 10 times a second.
func (a *address) every(s *Script, r *Runner, until time.Duration) {
	for time.Since(a.begun) < until {
		_, _ = run(a.Context(), r, s, Once)
		time.Sleep(100 * time.Millisecond)
	}
}

func TestAnAddressThatMovedIsFollowedAfterASecond(t *testing.T) {
	moving(t, func(a *address, s *Script) {
		runner := NewRunner(a.client(), a.options())
		_, err := run(a.Context(), runner, s, Once)
		require.ErrorIs(a, err, berth.ErrUnavailable)
		a.lead("master", table("ok", "1"))
		reply, err := run(a.Context(), runner, s, UntilDone)
		require.NoError(a, err)
		require.False(a, reply.Unanswered, "no call met the end of a connection")
		require.Less(a, time.Since(a.begun), 3*time.Second)
		require.Len(a, a.breaks, 1)
	})
}

func TestAReplicaForGoodIsLeftLessAndLessOften(t *testing.T) {
	moving(t, func(a *address, s *Script) {
		a.every(s, NewRunner(a.client(), a.options()), 4*time.Minute)
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
		for time.Since(a.begun) < 6*time.Second {
			_, _ = run(a.Context(), one, s, Once)
			_, _ = run(a.Context(), other, s, Once)
			time.Sleep(100 * time.Millisecond)
		}
		require.Len(a, a.breaks, 2)
		a.every(s, NewRunner(a.client(), a.options()), 10*time.Second)
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
			begun := time.Now()
			for time.Since(begun) < 5*time.Second {
				_, _ = run(a.Context(), runner, s, Once)
				time.Sleep(100 * time.Millisecond)
			}
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
		_, err := run(a.Context(), runner, s, UntilDone)
		require.NoError(a, err)
	})
}
