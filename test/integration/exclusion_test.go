package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/internal/testkit/amount"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/test/torture/history"
)

// mixer is one worker. Whoever is inside a thing stands in its file of the folder order.Path: with its fence, and until
// when the hold that it came with was good, by CLOCK_MONOTONIC. The file is locked while that is read and written; a lock ends
// with its process. Who has left is not good any more. The file "log" has a letter for each operation: + for a stay that
// begins, - for one that ends, x for one that ends after its hold, . for another one; and a line for what went wrong.
type mixer struct {
	servant *holdServant
	order   order
	log     *os.File
	err     error
}

// mix holds again and again.
func (c *holdServant) mix(ctx context.Context, o order) error {
	log, err := os.OpenFile(filepath.Join(o.Path, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // each letter was written through
	m := &mixer{servant: c, order: o, log: log}
	for !c.done.Load() && m.err == nil {
		within, cancel := context.WithTimeout(ctx, patience)
		m.hold(within)
		cancel()
	}
	return m.err
}

func (m *mixer) note(text string) {
	_, err := m.log.WriteString(text)
	m.err = cmp.Or(m.err, err)
}

// check keeps the first error. One that says that the hold has ended is none: the
// lease may have been too short for the machine.
func (m *mixer) check(err error) {
	if err != nil && !errors.Is(err, berth.ErrNotHeld) && !errors.Is(err, berth.ErrAbsent) && !errors.Is(err, berth.ErrOvertaken) {
		m.err = cmp.Or(m.err, err)
	}
}

// stands reads who stands in the file of a thing, and writes there whom next returns, if that is somebody.
func (m *mixer) stands(h berth.Hold, next func(fence, until int64) (int64, int64)) {
	thing := "thing"
	if a, ok := h.(*allocation); ok {
		thing = a.Resource()
	}
	file, err := os.OpenFile(filepath.Join(m.order.Path, thing), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		m.err = cmp.Or(m.err, err)
		return
	}
	defer func() { _ = file.Close() }() // ends the lock
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
	var fence, until int64
	_, _ = fmt.Fscan(file, &fence, &until) // nothing, before the first
	if fence, until = next(fence, until); fence > 0 && err == nil {
		_, err = file.WriteAt(fmt.Appendf(nil, "%20d %20d\n", fence, until), 0)
	}
	m.err = cmp.Or(m.err, err)
}

// enter is called when the hold is there, or there again. It returns false if it has run out on its way.
func (m *mixer) enter(h berth.Hold, again bool) (in bool) {
	// The time is read first: who is paused in between is not said to be inside.
	good := history.Monotonic() + int64(h.Left())
	m.stands(h, func(fence, until int64) (int64, int64) {
		now := history.Monotonic()
		if in = now < good; !in {
			return 0, 0
		}
		if fence > h.Fence() || fence == h.Fence() && !again || until > now {
			m.note(fmt.Sprintf("\n%T: %d comes in at %d, where %d is inside until %d\n", h, h.Fence(), now, fence, until))
		}
		m.note("+")
		return h.Fence(), good
	})
	return in
}

// leave is called before what is held is given back.
func (m *mixer) leave(h berth.Hold) {
	how := "x"
	m.stands(h, func(fence, _ int64) (int64, int64) {
		// Who holds it now, after the file was read, has held it all the while.
		held := h.Err() == nil
		if held {
			how = "-"
		}
		if fence == h.Fence() {
			return fence, 0
		}
		if held {
			m.note(fmt.Sprintf("\n%T: %d is inside still, and %d has come in\n", h, h.Fence(), fence))
		}
		return 0, 0 // another one has come, after this one's time
	})
	m.note(how)
}

// hold takes a hold, does something else with that of a pool, and releases.
func (m *mixer) hold(ctx context.Context) {
	h, err := m.take(ctx)
	if err != nil {
		m.check(err)
		return
	}
	in := m.enter(h, false)
	if in && m.servant.dies.Load() {
		self, err := os.FindProcess(os.Getpid())
		m.err = cmp.Or(m.err, err, self.Kill(), context.Cause(ctx))
		return
	}
	if a, ok := h.(*allocation); ok && in {
		in = m.use(ctx, a)
	}
	if in {
		m.leave(h)
	}
	m.check(h.Release(ctx))
}

func (m *mixer) take(ctx context.Context) (berth.Hold, error) {
	if m.servant.pools == nil {
		return m.servant.take(ctx, m.order)
	}
	opts := &allocator.AllocateOptions{Priority: rand.N(2)}
	if rand.N(4) == 0 {
		opts.Bind, opts.BindFor = fmt.Sprint("customer ", rand.N(10)), time.Minute
	}
	return asHold(m.servant.pool(m.order).Allocate(ctx, opts))
}

// use does something else with a resource. It returns false if the stay is over.
func (m *mixer) use(ctx context.Context, a *allocation) bool {
	switch rand.N(10) {
	case 0, 1:
		m.meddle(ctx, m.servant.pool(m.order))
	case 2, 3: // while another resource is on its way, there is no telling which of the two it is
		fence := a.Fence()
		m.leave(a)
		err := a.Swap(ctx)
		m.note(".")
		if !errors.Is(err, berth.ErrBusy) {
			m.check(err)
		}
		if same := a.Fence() == fence; same && !errors.Is(err, berth.ErrBusy) || !m.enter(a, same) {
			return false
		}
	}
	if rand.N(10) == 0 {
		_ = a.Rest(time.Duration(1+rand.N(10))*time.Millisecond, "it was too much")
	}
	return true
}

// meddle does what needs no hold, to any resource.
func (m *mixer) meddle(ctx context.Context, p *pool) {
	resource := stormResources[rand.N(len(stormResources))]
	var err error
	switch rand.N(5) {
	case 0:
		err = p.Rest(ctx, resource, time.Duration(rand.N(10))*time.Millisecond, "an operator", nil)
	case 1:
		err = p.Bind(ctx, fmt.Sprint("customer ", rand.N(10)), resource, nil)
	case 2:
		err = p.Unbind(ctx, fmt.Sprint("customer ", rand.N(10)))
	default:
		if _, err = p.Remove(ctx, []string{resource}); err == nil {
			_, err = p.Add(ctx, []string{resource}, nil)
		}
	}
	m.check(err)
	m.note(".")
}

// exclusion is processes that hold the contended name again and again, and some of which are
// killed and replaced.
type exclusion struct {
	*world
	dir     string
	lease   time.Duration
	crew    []*child
	works   []<-chan answer // of the crew
	ends    int             // how many were told to die in the midst of a stay
	signals int             // how many were killed at any moment
	start   time.Time
}

func (w *world) exclusion(processes int, lease time.Duration) *exclusion {
	w.Helper()
	w.Relies(lease)
	x := &exclusion{
		world: w.turn(), dir: w.TempDir(), lease: lease, crew: make([]*child, processes),
		works: make([]<-chan answer, processes), start: time.Now(),
	}
	for i := range x.crew {
		x.replace(i)
	}
	return x
}

func (x *exclusion) replace(i int) {
	x.Helper()
	x.crew[i] = x.spawn(x.lease)
	x.works[i] = x.crew[i].send(order{Do: "mix", Name: x.name(), Path: x.dir})
}

// kill ends one of the crew, half of the time in the midst of a stay.
func (x *exclusion) kill(i int) {
	x.Helper()
	if rand.N(2) == 0 {
		x.ends++
		x.crew[i].send(order{Do: "die", Name: x.name()}) // it may not live to answer
		x.Signalled("it has died", x.crew[i].ended)
	} else {
		x.signals++
		x.crew[i].kill()
	}
	x.replace(i)
}

// goOn waits until all workers together have ended so many operations.
func (x *exclusion) goOn(until int) {
	x.Helper()
	x.Await("the operations go on", func() bool { return len(x.log()) >= until })
}

// log is what all have noted, of whom none came in while another was inside.
func (x *exclusion) log() string {
	x.Helper()
	text, err := os.ReadFile(filepath.Join(x.dir, "log"))
	require.True(x, err == nil || os.IsNotExist(err), err)
	require.NotContains(x, string(text), "\n", "two were inside at once, or fences do not rise")
	return string(text)
}

// stop ends all, and checks that they have excluded each other.
func (x *exclusion) stop() {
	x.Helper()
	for i, c := range x.crew {
		require.Empty(x, c.ask(order{Do: "enough", Name: x.name()}).Err)
		require.Empty(x, c.hear(x.works[i]).Err)
		c.kill()
	}
	took, log := time.Since(x.start), x.log()
	things, err := filepath.Glob(filepath.Join(x.dir, "*"))
	require.NoError(x, err)
	ousted := strings.Count(log, "x")
	never := strings.Count(log, "+") - strings.Count(log, "-") - ousted
	x.Logf("%d operations of %d workers in %v, %d stays in %d things; %d were killed at any moment and %d within a stay; %d never ended, %d were ousted",
		len(log), len(x.crew), took.Round(100*time.Millisecond), strings.Count(log, "+"), len(things)-1, x.signals, x.ends, never, ousted)
	require.GreaterOrEqual(x, never, x.ends)
	require.LessOrEqual(x, never, x.ends+x.signals)
	// So many can have run out, if none ended before its own time: a push is believed for half a wait lease.
	most := (len(things) - 1) * (1 + int(took/(x.lease/2-heartbeat.Margin(x.lease))))
	require.LessOrEqual(x, ousted, most, "holds have ended before their time")
}

func TestSixteenProcessesExcludeEachOther(t *testing.T) {
	const processes, kills, rounds = 16, 3, 3
	w := private(t).of(keyspace.Lock)
	operations := 2 * 1000 * amount.Times() // of each stay its beginning and its end
	x := w.exclusion(processes, 2*time.Second)
	for round := range rounds {
		x.goOn((round + 1) * operations / (rounds + 1))
		for _, i := range rand.Perm(processes)[:1+rand.N(kills)] {
			x.kill(i)
		}
	}
	x.goOn(operations)
	x.stop()
	u := w.use(node.Config{})
	w.release(w.hold(u, terms{}))
}

// stormResources are those of the storm. They are fewer than its workers, so that
// there is always somebody who waits.
var stormResources = numbered(8)

func TestNoResourceHasTwoHoldersWhateverHappens(t *testing.T) {
	const steady, vanishing, operations, every = 8, 2, 8000, 500
	w := private(t).of(keyspace.Pool)
	p := w.pool(node.Config{})
	w.add(p, stormResources...)
	x := w.exclusion(steady+vanishing, 2*time.Second)
	for next := every; next <= operations; next += every {
		x.goOn(next)
		require.False(t, w.inspected(p).Moving, "a small pool is inspected in one step")
		if next%(4*every) == 0 {
			x.kill(steady + rand.N(vanishing))
		}
	}
	x.stop()
	w.add(p, stormResources...) // some were removed by those who died before they could add them again
	w.Await("the dead have lost what they had, and all have rested", func() bool {
		_, err := p.node.Operator().Sweep(w.Within(patience), keyspace.Pool, proxies) // nobody else is left to sweep
		require.NoError(w, err)
		n := w.reader().Look(keyspace.Pool, proxies)
		require.Equal(w, n.Capacity, n.Pool.Free+n.Held+n.Pool.Resting)
		return n.Pool.Free == n.Capacity && n.Waiting == 0
	})
	w.tombstones(proxies)
	w.allFree(p, len(stormResources))
}
