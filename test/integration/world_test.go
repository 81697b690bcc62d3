package integration

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// patience bounds every wait for something that must happen. It is far above
// what anything takes, so that only what hangs meets it.
const patience = 3 * time.Minute

// calls is how long a client repeats a call: no pause of the machine fails one.
const calls = 30 * time.Second

// safe is a lease that no pause of the machine ends, for holds that end by nothing else
// in a test, or by the death of their process.
const safe = 10 * time.Second

// bed is a namespace of its own on a server.
type bed struct {
	*testing.T
	server *harness.Server
	admin  rueidis.Client
	ns     string
	space  keyspace.Space
	kind   keyspace.Kind // whose keys are looked at
}

func newBed(t *testing.T, server *harness.Server) *bed {
	t.Helper()
	b := &bed{T: t, server: server, admin: server.Client(t), ns: harness.Namespace(t), kind: keyspace.Sem}
	var err error
	b.space, err = keyspace.New(b.ns)
	require.NoError(t, err)
	return b
}

// shared is a bed on the server that tests share.
func shared(t *testing.T) *bed {
	t.Helper()
	t.Parallel()
	return newBed(t, harness.Shared(t))
}

// private is a bed on a server for this test alone.
func private(t *testing.T, args ...string) *bed {
	t.Helper()
	t.Parallel()
	return newBed(t, harness.Start(t, args...))
}

// within bounds a step of the test.
func (b *bed) within(d time.Duration) context.Context {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	b.Cleanup(cancel)
	return ctx
}

// client returns a semaphore client on a connection of its own, closed when the
// test ends.
func (b *bed) client(cfg semaphore.Config, edits ...func(*rueidis.ClientOption)) *semaphore.Client {
	b.Helper()
	return b.clientOn(b.server.Client(b.T, edits...), cfg)
}

// clientOn is client on a given connection. What the test says nothing of is such that no
// pause of the machine matters.
func (b *bed) clientOn(redis rueidis.Client, cfg semaphore.Config) *semaphore.Client {
	b.Helper()
	cfg.Namespace = b.ns
	cfg.Lease, cfg.CallTimeout = cmp.Or(cfg.Lease, time.Minute), cmp.Or(cfg.CallTimeout, calls)
	c, err := semaphore.New(redis, cfg)
	require.NoError(b, err)
	b.Cleanup(func() {
		if err := c.Close(b.within(patience)); err != nil && !b.Failed() {
			b.Logf("closing a client: %v", err)
		}
	})
	return c
}

// sem is a semaphore of the client.
func (b *bed) sem(c *semaphore.Client, name string, capacity int) *semaphore.Semaphore {
	b.Helper()
	s, err := c.Semaphore(name, capacity)
	require.NoError(b, err)
	return s
}

// take acquires, and fails the test if that takes too long.
func (b *bed) take(s *semaphore.Semaphore, opts *semaphore.AcquireOptions) *semaphore.Permit {
	b.Helper()
	p, err := s.Acquire(b.within(patience), opts)
	require.NoError(b, err)
	return p
}

// taking is an acquire on its way.
type taking struct {
	done   chan struct{} // closed when it has returned
	permit *semaphore.Permit
	err    error
}

// queue begins an acquire, and returns when so many wait on the server.
func (b *bed) queue(s *semaphore.Semaphore, opts *semaphore.AcquireOptions, waiting int) *taking {
	b.Helper()
	w := b.begin(s, opts)
	b.awaitInLine(s.Name(), waiting, w.over)
	return w
}

// awaitInLine waits until so many wait for a name. A wait that is over before
// never stands in line: what it was to wait for had ended too soon.
func (b *bed) awaitInLine(name string, waiting int, over func() bool) {
	b.Helper()
	b.await("the claim stands in line", func() bool {
		ended := over() // before the look: who waits then may end after
		if b.look(name).waiting() >= waiting {
			return true
		}
		require.False(b, ended, "the wait for %q is over, but was to be one of %d", name, waiting)
		return false
	})
}

// begin begins an acquire.
func (b *bed) begin(s *semaphore.Semaphore, opts *semaphore.AcquireOptions) *taking {
	return b.beginWith(b.within(2*patience), s, opts)
}

// beginWith is begin with a context of the test's.
func (b *bed) beginWith(ctx context.Context, s *semaphore.Semaphore, opts *semaphore.AcquireOptions) *taking {
	w := &taking{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.permit, w.err = s.Acquire(ctx, opts)
	}()
	return w
}

// got waits for the permit.
func (w *taking) got(b *bed) *semaphore.Permit {
	b.Helper()
	b.signalled("the permit", w.done)
	require.NoError(b, w.err)
	return w.permit
}

// over says whether the acquire has returned.
func (w *taking) over() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// signalled waits until the channel is closed.
func (b *bed) signalled(what string, done <-chan struct{}) {
	b.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		require.FailNow(b, "waited too long", "for %s", what)
	}
}

// await polls until cond holds.
func (b *bed) await(what string, cond func() bool) {
	b.Helper()
	// A look costs the server and the test something, so what takes long is looked at
	// less often.
	pause, longest := time.Millisecond, 50*time.Millisecond
	for end := time.Now().Add(patience); !cond(); pause = min(2*pause, longest) {
		if time.Now().After(end) {
			require.FailNow(b, "waited too long", "until %s", what)
		}
		<-time.After(pause)
	}
}

// do runs a command, whose answer must not be an error. It is sent again where a
// connection breaks: some tests break them all.
func (b *bed) do(words ...string) (result rueidis.RedisResult) {
	b.Helper()
	b.await(words[0]+" is answered", func() bool {
		result = b.admin.Do(b.within(patience), b.admin.B().Arbitrary(words...).Build())
		_, answered := rueidis.IsRedisErr(result.Error())
		return result.Error() == nil || rueidis.IsRedisNil(result.Error()) || answered
	})
	if err := result.Error(); !rueidis.IsRedisNil(err) {
		require.NoError(b, err, words)
	}
	return result
}

// info is one field of INFO.
func (b *bed) info(section, field string) string {
	b.Helper()
	text, err := b.do("INFO", section).ToString()
	require.NoError(b, err)
	for line := range strings.Lines(text) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), ":"); key == field {
			return value
		}
	}
	return ""
}

// runs counts the scripts that a private server has run.
func (b *bed) runs() int {
	b.Helper()
	total := 0
	for _, command := range []string{"cmdstat_evalsha", "cmdstat_eval"} {
		calls, _, _ := strings.Cut(strings.TrimPrefix(b.info("commandstats", command), "calls="), ",")
		if calls == "" {
			continue
		}
		n, err := strconv.Atoi(calls)
		require.NoError(b, err)
		total += n
	}
	return total
}

// connections counts the clients of a private server.
func (b *bed) connections() int {
	b.Helper()
	n, err := strconv.Atoi(b.info("clients", "connected_clients"))
	require.NoError(b, err)
	return n
}

// now is the server's time in milliseconds.
func (b *bed) now() int64 {
	b.Helper()
	t, err := b.do("TIME").AsIntSlice()
	require.NoError(b, err)
	return t[0]*1000 + t[1]/1000
}
