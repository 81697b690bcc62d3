package berthtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/internal/testkit/backup"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
)

// Redis returns a client of a new embedded server, empty and without a socket. Client and
// server end with the test, without a goroutine left behind. If one of them does not start, the
// test ends with a fatal error. Redis is short for New(t).Client().
func Redis(t testing.TB) rueidis.Client {
	t.Helper()
	return New(t).Client()
}

// Node returns a node on a new embedded server. The node is closed when the test ends, before its server. Node is short for
// New(t).Node(node.Config{}).
func Node(t testing.TB) *node.Node {
	t.Helper()
	return New(t).Node(node.Config{})
}

// Server is an embedded Redis of a test, with the faults that a real Redis may have. Call Client,
// Node, Lose, LoseAll, Snapshot and Failover, which may end the test with a fatal error, only on the
// goroutine of the test. All other methods are safe for concurrent use. A fault affects all clients.
// When the test ends, all faults end before the clients.
type Server struct {
	t      testing.TB
	server *embedded.Server
	link   *link.Link

	mu     sync.Mutex
	cut    int           // guarded by mu: how many outages are under way
	stuck  int           // guarded by mu: how many times it hangs
	delay  time.Duration // guarded by mu: of replies
	drops  int           // guarded by mu: how many replies are still to be dropped
	timers []*time.Timer // guarded by mu: each ends an outage or a hang
	faulty bool          // guarded by mu: there was a fault
}

// New starts an embedded server, empty and without a socket. The server ends with the test. If
// the server does not start, the test ends with a fatal error.
func New(t testing.TB) *Server {
	t.Helper()
	server, err := embedded.Start()
	if err != nil {
		t.Fatalf("berthtest: %v", err)
	}
	s := &Server{t: t, server: server, link: link.New(nil)}
	s.link.OnCommand(s.fate)
	t.Cleanup(s.close)
	return s
}

// longest is the longest pause of rueidis before it repeats a call.
const longest = 32 * time.Millisecond

// close ends the server, after its clients. A call that nobody waits for may still
// rest before it is repeated, where its connection broke, and a bubble cannot end with that.
func (s *Server) close() {
	s.mu.Lock()
	faulty := s.faulty
	s.mu.Unlock()
	if faulty {
		time.Sleep(longest + time.Millisecond) //nolint:forbidigo // nothing tells of such a rest
	}
	s.server.Close()
}

// Client returns a new client of the server, like that of another process. The client ends with
// the test, without a goroutine left behind. If the client cannot connect, for example during
// an outage, the test ends with a fatal error. The client checks idle connections once a
// minute, not once a second, so that hours of virtual time are short, and has two connections
// for its calls on every machine.
func (s *Server) Client() rueidis.Client {
	s.t.Helper()
	client, err := s.server.Client(s.link.Wrap, link.RarePings, func(option *rueidis.ClientOption) {
		option.Dialer.KeepAlive = time.Minute
		option.RetryDelay = func(attempts int, _ rueidis.Completed, _ error) time.Duration {
			return min(longest, time.Millisecond<<min(attempts, 10))
		}
	})
	if err != nil {
		s.t.Fatalf("berthtest: Client: %v", err)
	}
	s.t.Cleanup(func() { // before the server's
		s.heal()
		client.Close()
	})
	return client
}

// Node returns a new node on a client of its own, like that of another process. The node is closed when the test ends,
// after all faults and before its client. If cfg is invalid, the test ends with a fatal error.
func (s *Server) Node(cfg node.Config) *node.Node {
	s.t.Helper()
	n, err := node.New(s.Client(), cfg)
	if err != nil {
		s.t.Fatalf("berthtest: Node: %v", err)
	}
	s.t.Cleanup(func() {
		s.heal()
		if err := n.Close(context.Background()); err != nil {
			s.t.Logf("berthtest: Close of the node: %v", err)
		}
	})
	return n
}

// Outage cuts all clients off for d: their connections break, calls in flight are lost, and no
// client can connect. Then clients connect again. Outage returns at once. Outages may overlap,
// and may outlast the test. Outage(0) only breaks the connections.
func (s *Server) Outage(d time.Duration) {
	defer s.fault()()
	if d <= 0 {
		s.link.Break()
		return
	}
	s.cut++
	s.link.Cut()
	s.after(d, &s.cut, s.link.Mend)
}

// Hang stops all data in both directions for d, while connections stay. Then the delayed data
// arrives, in order. If a client has given up a connection meanwhile, the calls in flight on
// that connection are lost. Hang returns at once.
func (s *Server) Hang(d time.Duration) {
	defer s.fault()()
	s.stuck++
	s.link.Stall()
	s.after(d, &s.stuck, s.link.Flow)
}

// fault notes that there is a fault. It locks mu, and returns what unlocks it.
func (s *Server) fault() (unlock func()) {
	s.mu.Lock()
	s.faulty = true
	return s.mu.Unlock
}

// after counts down in d. It is called with mu held.
func (s *Server) after(d time.Duration, count *int, end func()) {
	s.timers = append(s.timers, time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended(count, end)
	}))
}

// ended ends the fault with the last one. It is called with mu held.
func (s *Server) ended(count *int, end func()) {
	if *count--; *count == 0 {
		end()
	}
}

// DelayReplies makes the reply to each script (EVAL, EVALSHA) arrive d after the script has
// run, from now on; 0 ends the delay. Berth's calls are scripts. Later replies on the same
// connection wait for a delayed one.
func (s *Server) DelayReplies(d time.Duration) {
	defer s.fault()()
	s.delay = max(d, 0)
}

// DropReplies drops the replies to the next n scripts (EVAL, EVALSHA): each script runs, and
// then its connection breaks. Other calls in flight on that connection are lost too, and may or
// may not have run. DropReplies(0) ends this.
func (s *Server) DropReplies(n int) {
	defer s.fault()()
	s.drops = max(n, 0)
}

// fate has what happens to a script's reply decided when the script has run.
func (s *Server) fate(c link.Command) link.Fate {
	switch c.Name {
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO":
		return link.OnceRun(s.replyFate)
	}
	return link.Pass
}

func (s *Server) replyFate() link.Fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drops > 0 {
		s.drops--
		return link.LoseReply
	}
	return link.Slow(s.delay)
}

// Snapshot has the data of a server at one moment. The zero Snapshot is empty, like a server
// that was restarted without its data.
type Snapshot struct {
	of   *Server
	copy backup.Copy
}

// Snapshot returns the present data of the server, for [Server.Failover]. If a key has another
// type than string, hash, set, list or sorted set, the test ends with a fatal error.
func (s *Server) Snapshot() Snapshot {
	s.t.Helper()
	snapshot := Snapshot{of: s}
	s.direct("Snapshot", func(ctx context.Context, client rueidis.Client) (err error) {
		snapshot.copy, err = backup.Take(ctx, client)
		return err
	})
	return snapshot
}

// Failover replaces the server by one with the data of the snapshot, minus expired keys, and without loaded
// scripts: all later writes are lost. All connections break. Clients connect again after a millisecond, when
// Failover returns, or after an outage under way. A snapshot of another Server ends the test with a fatal error.
func (s *Server) Failover(to Snapshot) {
	s.t.Helper()
	if to.of != nil && to.of != s {
		s.t.Fatal("berthtest: Failover: the snapshot is of another server")
	}
	unlock := s.fault()
	s.cut++
	s.link.Cut()
	unlock()
	time.Sleep(time.Millisecond) //nolint:forbidigo // without any time in between a fence would come twice
	s.direct("Failover", func(ctx context.Context, client rueidis.Client) error {
		if err := to.copy.Restore(ctx, client); err != nil {
			return err
		}
		return client.Do(ctx, client.B().ScriptFlush().Build()).Error()
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended(&s.cut, s.link.Mend)
}

// direct does something on the server that no fault is in the way of. An error ends the test.
func (s *Server) direct(what string, do func(context.Context, rueidis.Client) error) {
	s.t.Helper()
	client, err := s.server.Client(link.RarePings)
	if err == nil {
		defer client.Close()
		err = do(context.Background(), client)
	}
	if err != nil {
		s.t.Fatalf("berthtest: %s: %v", what, err)
	}
}

// heal ends all faults, for good.
func (s *Server) heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, timer := range s.timers {
		timer.Stop()
	}
	s.timers, s.cut, s.stuck, s.delay, s.drops = nil, 0, 0, 0, 0
	s.link.Mend()
	s.link.Flow()
}
