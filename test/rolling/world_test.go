package rolling

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/pkg/semaphore"
)

const (
	lease    = 6 * time.Second // of all processes in a play
	second   = time.Second
	name     = "rolled" // what is contended for
	capacity = 3        // of a semaphore
)

// world is a server in virtual time, where processes of two releases meet. It is the
// TestingT of the play: a failure ends the play, and is what perform returns.
type world struct {
	t       *testing.T
	server  *embedded.Server
	redis   rueidis.Client // looks on
	reader  *inspect.Reader
	failure string
	closing []func()
	tapes   []*tape // they record what is sent
	unread  bool    // nobody asks what is read by Go, and not by a script
}

// failed is what ends a play that has failed.
type failed struct{}

// Errorf notes a failure.
func (w *world) Errorf(format string, args ...any) { w.failure += fmt.Sprintf(format, args...) }

// FailNow ends the play.
func (w *world) FailNow() { panic(failed{}) }

// Helper is for testify.
func (w *world) Helper() {}

// perform runs a play between processes of two releases, nil for today's, and
// returns how it failed, "" if it did not. Tapes record it. What it leaves running fails t.
func perform(t *testing.T, a, b *scriptkit.Library, play func(w *world, a, b *process), tapes ...*tape) (failure string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, tapes: tapes}
		w.pass(2 * 365 * 24 * time.Hour) // since September 2001 a time in milliseconds has 13 digits
		defer func() { failure = w.failure }()
		defer func() {
			for _, end := range slices.Backward(w.closing) {
				end()
			}
		}()
		var err error
		w.server, err = embedded.Start()
		require.NoError(t, err)
		w.closing = append(w.closing, w.server.Close)
		w.redis, err = w.server.Client(link.RarePings)
		require.NoError(t, err)
		w.closing = append(w.closing, w.redis.Close)
		w.redis = w.record(w.redis, new(atomic.Bool))
		w.reader, err = inspect.New(w.redis, inspect.Config{})
		require.NoError(t, err)
		defer func() {
			if p := recover(); p != nil && p != any(failed{}) {
				panic(p)
			}
		}()
		play(w, w.process(a), w.process(b))
	})
	return failure
}

// record has the tapes record what a client sends until it is dead.
func (w *world) record(redis rueidis.Client, dead *atomic.Bool) rueidis.Client {
	for _, tape := range w.tapes {
		redis = &recorder{redis, tape, dead}
	}
	return redis
}

// process is a process of a release: a node, with a face of each primitive.
type process struct {
	*node.Node
	w     *world
	wire  *link.Link
	redis rueidis.Client
	dead  atomic.Bool
	sem   *semaphore.Semaphore
	locks *qlock.Locks
	pool  *allocator.Pool[string]
	pools *allocator.Operator

	mu    sync.Mutex
	heard []string // guarded by mu
}

// process starts one of the release, nil for today's.
func (w *world) process(release *scriptkit.Library) *process {
	p := &process{w: w, wire: link.New(nil)}
	redis, err := w.server.Client(link.RarePings, p.wire.Wrap)
	require.NoError(w, err)
	w.closing = append(w.closing, redis.Close)
	redis = w.record(redis, &p.dead)
	if release != nil {
		redis = beside(redis, release)
	}
	p.redis = redis
	p.Node, err = node.New(redis, node.Config{Lease: lease, Observer: observe.Func(p.hears), Swarm: node.SwarmConfig{FlushEvery: -1}})
	require.NoError(w, err)
	w.closing = append(w.closing, func() { _ = p.Close(context.Background()) }) // of one that died nothing can be given back
	p.sem, p.locks = semaphore.New(p.Node, name, capacity, nil), qlock.New(p.Node, &qlock.Config{Lease: lease})
	p.pool, p.pools = allocator.New(p.Node, name, allocator.PoolConfig[string]{}), allocator.NewOperator(p.Node)
	return p
}

// hears notes the kinds of events that are at least warnings.
func (p *process) hears(e observe.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kind := "`" + string(e.Kind) + "`"; e.Kind.Level() >= slog.LevelWarn && !slices.Contains(p.heard, kind) {
		p.heard = append(p.heard, kind)
	}
}

// events are the kinds of those that the process has told of since the last call, in the order of the alphabet.
func (p *process) events() (kinds []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kinds, p.heard = p.heard, nil
	slices.Sort(kinds)
	return kinds
}

// die ends the process: nothing of it reaches the server any more, until it is back.
func (p *process) die() {
	p.dead.Store(true)
	p.wire.Cut()
}

func (p *process) back() {
	p.dead.Store(false)
	p.wire.Mend()
}

// unread is the play without what is read by Go. The scripts of a mutant have another format than
// the Go code beside them, which a whole release would have changed as well.
func unread(p play) play {
	return func(w *world, a, b *process) {
		w.unread = true
		p(w, a, b)
	}
}

// read reads what there is. No script is needed for it, so each release reads the same.
func (w *world) read(look func()) {
	if !w.unread {
		look()
	}
}

// pass lets time pass, and everything that happens then.
func (w *world) pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// ok wants no error.
func (w *world) ok(err error) {
	require.NoError(w, err)
}

// do runs a command on the server.
func (w *world) do(words ...string) {
	w.ok(w.redis.Do(context.Background(), w.redis.B().Arbitrary(words...).Build()).Error())
}

// all collects a listing.
func all[T any](w *world, seq iter.Seq2[T, error]) (items []T) {
	for item, err := range seq {
		w.ok(err)
		items = append(items, item)
	}
	return items
}

// look reads the name.
func (w *world) look(kind keyspace.Kind) berth.Name {
	n, err := w.reader.Name(bg, kind, name)
	w.ok(err)
	return n
}

// holders and waiters are all of the name.
func (w *world) holders(kind keyspace.Kind) []berth.Holder {
	page, err := w.reader.Holders(bg, kind, name, "", 0)
	w.ok(errors.Join(append(page.Problems, err)...))
	return page.Items
}

func (w *world) waiters(kind keyspace.Kind) []berth.Waiter {
	page, err := w.reader.Waiters(bg, kind, name, "", 0)
	w.ok(errors.Join(append(page.Problems, err)...))
	return page.Items
}

type handle = berth.Hold

// wait is an acquire on its way.
type wait struct {
	*testkit.Call[handle]
	w    *world
	stop context.CancelFunc
}

// queue begins an acquire that has to wait, and lets it take its place.
func (w *world) queue(acquire func(ctx context.Context) (handle, error)) *wait {
	ctx, stop := context.WithCancel(context.Background())
	q := &wait{testkit.Begin(ctx, acquire), w, stop}
	w.closing = append(w.closing, stop)
	w.pass(10 * time.Millisecond)
	q.waits()
	return q
}

// waits wants the acquire not to have returned.
func (q *wait) waits() { require.False(q.w, q.Over(), "it waits") }

// granted wants the acquire to have been granted by now, with a fence behind after.
func (q *wait) granted(after int64) handle {
	q.w.pass(10 * time.Millisecond) // a confirming call takes its time
	require.True(q.w, q.Over(), "it has not been granted")
	q.w.ok(q.Err)
	require.Greater(q.w, q.Got.Fence(), after, "fences rise")
	return q.Got
}

// take wants what a call acquires.
func take(w *world) func(handle, error) handle {
	return func(h handle, err error) handle {
		w.ok(err)
		return h
	}
}

// lives wants holds that still hold.
func lives(w *world, holds ...handle) {
	for _, h := range holds {
		w.ok(h.Err())
		w.ok(h.Renew(bg))
	}
}

// giveBack releases holds.
func giveBack(w *world, holds ...handle) {
	for _, h := range holds {
		w.ok(h.Release(bg))
	}
	synctest.Wait()
}

// older is a client whose scripts are those of another release: each of today's that
// it is given to run is sent as the other release has it.
type older struct {
	rueidis.Client
	other map[string]*scriptkit.Script // by the SHA and the source of today's
}

// beside puts a client of today back to the release.
func beside(redis rueidis.Client, release *scriptkit.Library) rueidis.Client {
	o := &older{redis, map[string]*scriptkit.Script{}}
	for _, script := range today.library.Scripts() {
		if other := find(release, script.Name); other != nil {
			o.other[script.SHA], o.other[script.Source()] = other, other
		}
	}
	return o
}

// Do runs a command; a script is the release's own.
func (o *older) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	words := command.Commands()
	if len(words) < 3 || o.other[words[1]] == nil {
		return o.Client.Do(ctx, command)
	}
	script, arg := o.other[words[1]], []string(nil)
	keys, err := strconv.Atoi(words[2])
	if err == nil {
		words, arg = words[:3+keys], words[3+keys:]
	}
	switch {
	case err != nil:
	case words[0] == "EVALSHA":
		command = o.B().Evalsha().Sha1(script.SHA).Numkeys(int64(keys)).Key(words[3:]...).Arg(arg...).Build()
	case words[0] == "EVAL":
		command = o.B().Eval().Script(script.Source()).Numkeys(int64(keys)).Key(words[3:]...).Arg(arg...).Build()
	}
	return o.Client.Do(ctx, command)
}
