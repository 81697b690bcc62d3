package integration

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/test/harness"
)

// refusing is a server that is had to refuse.
type refusing struct {
	*world
	kind   string         // as in scriptkit.Refusal.Seen
	writer rueidis.Client // beside the administrator's; nil until it is wanted
}

// start starts another server of the kind.
func (s *refusing) start(args ...string) *refusing {
	s.Helper()
	start := harness.Single
	if s.kind == "Valkey" {
		start = harness.Valkey
	}
	return &refusing{world: newWorld(s.T, start(s.T, args...).Servers()[0]), kind: s.kind}
}

// clustered starts a server of a Cluster, which serves the slots from 0 to most.
func (s *refusing) clustered(most string) *refusing {
	s.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s, err)
	_, bus, err := net.SplitHostPort(free.Addr().String())
	require.NoError(s, err)
	require.NoError(s, free.Close())
	c := s.start("--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-allow-reads-when-down", "yes")
	c.do("CLUSTER", "ADDSLOTSRANGE", "0", most)
	return c
}

// answers is the error that the server answers.
func (w *world) answers(words ...string) error {
	return w.admin.Do(w.Within(patience), w.admin.B().Arbitrary(words...).Build()).Error()
}

// dial makes a client, and returns the error of that.
func (s *refusing) dial(edit func(*rueidis.ClientOption)) error {
	option := rueidis.ClientOption{InitAddress: []string{s.server.Addr}, ForceSingleClient: true, DisableCache: true}
	edit(&option)
	client, err := rueidis.NewClient(option)
	if client != nil {
		client.Close()
	}
	return err
}

// hangsUp is what the server answers to a connection before it hangs up. rueidis takes that for a broken one, unless
// it has only one command to begin with.
func (s *refusing) hangsUp() error {
	conn, err := net.Dial("tcp", s.server.Addr)
	require.NoError(s, err)
	defer func() { _ = conn.Close() }()
	require.NoError(s, conn.SetReadDeadline(time.Now().Add(patience)))
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(s, err)
	return errors.New(strings.TrimSpace(strings.TrimPrefix(line, "-")))
}

// writes is what a script that writes is answered.
func (s *refusing) writes(key string) error {
	const script = `redis.call("TIME") return redis.call("SET", KEYS[1], "1")`
	if s.writer == nil {
		s.writer = s.server.Client(s.T)
	}
	return s.writer.Do(s.Within(patience), s.writer.B().Arbitrary("EVAL", script, "1", key).Build()).Error()
}

// awaits awaits an answer that is neither good nor that of something else.
func (s *refusing) awaits(begins string, ask func() error) (err error) {
	s.Helper()
	s.Await(begins, func() bool { err = ask(); return err != nil && strings.HasPrefix(err.Error(), begins) })
	return err
}

// failSnapshots has snapshots fail, and all writes refused for it.
func failSnapshots(w *world) {
	w.Helper()
	found, err := w.do("CONFIG", "GET", "dir").AsStrMap()
	require.NoError(w, err)
	require.NoError(w, os.Mkdir(filepath.Join(found["dir"], "dump.rdb"), 0o755))
	w.do("CONFIG", "SET", "save", "3600 1000000")
	w.Await("a snapshot", func() bool {
		_ = w.answers("BGSAVE") // another one may be on its way
		return w.info("persistence", "rdb_last_bgsave_status") == "err"
	})
}

// provoke has a server answer each refusal that can be had here, by how it begins.
var provoke = map[string]func(s *refusing) error{
	"BUSY":                  func(s *refusing) error { busy, _ := s.busy(); return busy },
	"Script killed by user": func(s *refusing) error { _, killed := s.busy(); return killed },
	"CLUSTERDOWN": func(s *refusing) error {
		return s.clustered("0").writes("x")
	},
	"Script attempted to execute a": func(s *refusing) error { return s.clustered("16382").writes("{a}") },
	"CROSSSLOT": func(s *refusing) error {
		return s.clustered("16383").answers("MGET", "a", "b")
	},
	"LOADING": func(s *refusing) error {
		l := s.start("--enable-debug-command", "yes")
		l.do("EVAL", `for i = 1, 3000 do redis.call("SET", "k" .. i, "v") end`, "0")
		l.do("CONFIG", "SET", "key-load-delay", "1000")
		l.do("CONFIG", "SET", "loading-process-events-interval-bytes", "1024")
		over := make(chan struct{})
		other := l.server.Client(s.T)
		require.NoError(s, l.writes("x"))
		go func() {
			defer close(over)
			_ = other.Do(context.Background(), other.B().Arbitrary("DEBUG", "RELOAD").Build()).Error()
		}()
		err := l.awaits("LOADING", func() error { return l.writes("x") })
		l.do("CONFIG", "SET", "key-load-delay", "0")
		s.Signalled("the load", over)
		return err
	},
	"MASTERDOWN": func(s *refusing) error {
		return s.start("--replicaof", "127.0.0.1", "1", "--replica-serve-stale-data", "no").writes("x")
	},
	"MISCONF": func(s *refusing) error {
		m := s.start()
		failSnapshots(m.world)
		return m.writes("x")
	},
	"NOREPLICAS": func(s *refusing) error { return s.start("--min-replicas-to-write", "1").writes("x") },
	"READONLY":   func(s *refusing) error { return s.start("--replicaof", "127.0.0.1", "1").writes("x") },
	"REDIRECT": func(s *refusing) error {
		r := s.start("--replicaof", "127.0.0.1", "1")
		var err error
		require.NoError(s, r.server.Client(s.T).Dedicated(func(c rueidis.DedicatedClient) error {
			if err := c.Do(s.Within(patience), c.B().Arbitrary("CLIENT", "CAPA", "redirect").Build()).Error(); err != nil {
				return err
			}
			err = c.Do(s.Within(patience), c.B().Get().Key("x").Build()).Error()
			return nil
		}))
		return err
	},
	"TRYAGAIN": func(s *refusing) error { return s.moving(true).answers("MGET", "{a}1", "{a}2") },
	"ASK":      func(s *refusing) error { return s.moving(true).answers("GET", "{a}2") },
	"MOVED":    func(s *refusing) error { return s.moving(false).answers("GET", "{a}2") },
	"max number of clients": func(s *refusing) error {
		m := s.start("--maxclients", "1")
		m.do("PING") // on the one connection
		return m.hangsUp()
	},
	"AUTH <password> called without any password": func(s *refusing) error {
		return s.dial(func(o *rueidis.ClientOption) { o.AlwaysRESP2, o.Password = true, "secret" })
	},
	"NOAUTH": func(s *refusing) error {
		n := s.start()
		n.do("CONFIG", "SET", "requirepass", "secret")
		return n.dial(func(*rueidis.ClientOption) {})
	},
	"WRONGPASS": func(s *refusing) error {
		return s.dial(func(o *rueidis.ClientOption) { o.Username, o.Password = "nobody", "secret" })
	},
	"NOPERM": func(s *refusing) error {
		s.do("ACL", "SETUSER", "poor", "on", ">secret", "-@all", "+@connection")
		poor := s.server.Client(s.T, func(o *rueidis.ClientOption) { o.Username, o.Password = "poor", "secret" })
		return poor.Do(s.Within(patience), poor.B().Get().Key("x").Build()).Error()
	},
	"NOPROTO": func(s *refusing) error { return s.answers("HELLO", "9") },
	"OOM":     func(s *refusing) error { return s.start("--maxmemory", "1").writes("x") },
	"WRONGTYPE": func(s *refusing) error {
		s.do("SET", "text", "x")
		return s.answers("HGETALL", "text")
	},
	"unknown command": func(s *refusing) error { return s.answers("NOSUCHCOMMAND") },
}

// busy has a script run for long, and ends it.
func (s *refusing) busy() (busy, killed error) {
	b := s.start("--busy-reply-threshold", "10")
	require.NoError(s, b.writes("x"))
	other, answered := b.server.Client(s.T), make(chan error, 1)
	go func() {
		answered <- other.Do(context.Background(), other.B().Arbitrary("EVAL", "while true do end", "0").Build()).Error()
	}()
	busy = b.awaits("BUSY", func() error { return b.writes("x") })
	b.do("SCRIPT", "KILL")
	return busy, <-answered
}

// moving is a server of a Cluster with a slot that is on its way to another server, or has gone.
func (s *refusing) moving(onItsWay bool) *refusing {
	from, to := s.clustered("16383"), s.clustered("0")
	to.do("CLUSTER", "DELSLOTS", "0")
	s.Await("the cluster to serve", func() bool { return from.writes("{a}1") == nil })
	host, port, err := net.SplitHostPort(to.server.Addr)
	require.NoError(s, err)
	found, err := to.do("CONFIG", "GET", "cluster-port").AsStrMap()
	require.NoError(s, err)
	from.do("CLUSTER", "MEET", host, port, found["cluster-port"])
	id, err := to.do("CLUSTER", "MYID").ToString()
	require.NoError(s, err)
	state := "MIGRATING"
	if !onItsWay {
		state = "NODE"
		from.do("DEL", "{a}1")
	}
	s.Await("the servers to meet", func() bool { return from.answers("CLUSTER", "SETSLOT", "15495", state, id) == nil })
	return from
}

// Each refusal of the table that says so was seen: a server of each kind that it names answers it.
func TestRefusalsAreThoseOfRealServers(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Redis", "Valkey"} {
		for _, r := range scriptkit.Refusals() {
			if !slices.Contains(r.Seen, kind) {
				continue
			}
			t.Run(kind+", "+r.Begins, func(t *testing.T) {
				t.Parallel()
				s := &refusing{world: &world{Patient: testkit.RealTime(t)}, kind: kind}
				err := provoke[r.Begins](s.start())
				require.Error(t, err)
				require.True(t, r.Matches(strings.TrimPrefix(err.Error(), "ERR ")), err.Error())
			})
		}
	}
}

// rueidis would send a PING behind an UNSUBSCRIBE, and end the process where the answer is an error that it does not
// expect.
func TestAClientClosesWhileTheServerRefuses(t *testing.T) {
	t.Parallel()
	for what, begin := range map[string]func(w *world){
		"writes": failSnapshots,
		"all": func(w *world) {
			w.do("CONFIG", "SET", "replica-serve-stale-data", "no")
			w.do("REPLICAOF", "127.0.0.1", "1")
		},
	} {
		w := newWorld(t, harness.Single(t).Servers()[0])
		redis := w.server.Client(t)
		n := w.nodeOn(redis, node.Config{Retry: berth.Retry{Attempts: 1}})
		s := w.sem(n, "gpu", 1)
		p := w.take(s, nil)
		q := w.queue(s, nil, 1)
		w.subscribed(n)
		begin(w)
		_ = n.Close(w.Within(patience)) // what it holds cannot be given back
		require.Error(t, p.Err())
		q.Fails(w, berth.ErrClosed)
		require.NoError(t, redis.Do(w.Within(patience), redis.B().Time().Build()).Error(), what)
	}
}
