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

// Redis returns a client of an embedded server of its own, empty and without a
// socket. Both end with the test, without a goroutine left behind. If one of
// them does not start, the test ends with a fatal error. It is short for
// New(t).Client().
func Redis(t testing.TB) rueidis.Client {
	t.Helper()
	return New(t).Client()
}

// Node returns a node on an embedded server of its own. The node is closed with the test, before its server ends. It is short for
// New(t).Node(node.Config{}).
func Node(t testing.TB) *node.Node {
	t.Helper()
	return New(t).Node(node.Config{})
}

// Server is an embedded Redis of a test, with the faults that a real one may have. Its
// methods may be called from several goroutines at once, but for those that may end the
// test with a fatal error: Client, Node, Lose, LoseAll, Snapshot and Failover belong to the
// goroutine of the test. All its clients meet a fault. With the end of the test all faults end, before
// its clients do.
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

// New starts an embedded server, empty and without a socket. It ends with the
// test. If it does not start, the test ends with a fatal error.
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

// Client returns a new client of the server, as another process would have one.
// It ends with the test, without a goroutine left behind. If it does not
// connect, as during an outage, the test ends with a fatal error. It looks
// after idle connections once a minute, not once a second, so that hours of virtual time
// are short, and has two connections for its calls whatever the machine.
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

// Node returns a new node on a client of its own, as another process would have one. It is closed with the test, when all faults
// have ended, before its client. If cfg cannot be, the test ends with a fatal error.
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

// Outage keeps all clients from the server for d: their connections break, what is
// under way on them is lost, and nobody connects. Then clients connect again. Outage
// returns at once. Outages may overlap, and may outlast the test. Outage(0) only breaks
// the connections.
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

// Hang has the server not answer for d: connections stay, but nothing passes, in either
// direction. Then all that was held back arrives, in its order. Who had given up
// on a connection meanwhile has lost what was under way on it. It returns at once.
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

// DelayReplies has the reply to each script (EVAL, EVALSHA) arrive d after the script
// has run, from now on; 0 ends that. Berth's calls are scripts. What comes behind such a reply
// on the same connection waits for it.
func (s *Server) DelayReplies(d time.Duration) {
	defer s.fault()()
	s.delay = max(d, 0)
}

// DropReplies has the next n scripts (EVAL, EVALSHA) run, and their replies never
// arrive: in place of each its connection breaks. Whatever else was under way on
// that connection is lost, too, and may or may not have run. 0 ends that.
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

// Snapshot is what a server had at one moment. The zero Snapshot is nothing: that of a
// server that was restarted without its data.
type Snapshot struct {
	of   *Server
	copy backup.Copy
}

// Snapshot keeps what the server has now, for [Server.Failover]. If that has a key
// of another type than string, hash, set, list or sorted set, the test ends with a fatal
// error.
func (s *Server) Snapshot() Snapshot {
	s.t.Helper()
	snapshot := Snapshot{of: s}
	s.direct("Snapshot", func(ctx context.Context, client rueidis.Client) (err error) {
		snapshot.copy, err = backup.Take(ctx, client)
		return err
	})
	return snapshot
}

// Failover puts another server in the place of this one, which has what this one had when
// the snapshot was taken, less what has expired since, and no script loaded: all later
// writes are lost. All connections break, and clients connect again after a millisecond, when it
// returns, or after the outage that is under way. A snapshot of another Server ends the test with a fatal error.
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
