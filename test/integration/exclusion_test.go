package integration

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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

// The records of a file of stays: a number of 8 bytes each for what happened (of what begins: and for how long
// it was good, in ns, shifted by 8 bits), the fence, CLOCK_MONOTONIC, and how many operations the worker has ended,
// shifted by 8 bits, and which resource it is about. What is written is there after a kill -9; a record never
// crosses a page, so it is there whole.
const (
	entered = iota + 1 // after the call for the hold has returned
	left               // before Release is sent, and the hold was still there
	ousted             // the same, but the hold had ended before
	back               // the stay goes on, though its end was written

	recordSize = 32
)

// mixer is one worker.
type mixer struct {
	servant *holdServant
	order   order
	file    *os.File
	ops     int64
	err     error
}

// mix holds again and again.
func (c *holdServant) mix(ctx context.Context, o order) error {
	file, err := os.OpenFile(o.Path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // each record was written through
	m := &mixer{servant: c, order: o, file: file}
	for !c.done.Load() && m.err == nil {
		within, cancel := context.WithTimeout(ctx, patience)
		m.hold(within)
		cancel()
	}
	return m.err
}

// note writes a record.
func (m *mixer) note(what int64, h berth.Hold, at time.Duration) {
	var index int64
	if a, ok := h.(*allocation); ok {
		_, err := fmt.Sscanf(a.Resource(), "r%d", &index)
		m.err = cmp.Or(m.err, err)
	}
	var record [recordSize]byte
	for i, value := range []int64{what, h.Fence(), int64(at), m.ops<<8 | index} {
		binary.LittleEndian.PutUint64(record[8*i:], uint64(value))
	}
	_, err := m.file.Write(record[:])
	m.err = cmp.Or(m.err, err)
}

// check keeps the first error. One that says that the hold has ended is none: the
// lease may have been too short for the machine.
func (m *mixer) check(err error) {
	if err != nil && !errors.Is(err, berth.ErrNotHeld) && !errors.Is(err, berth.ErrAbsent) && !errors.Is(err, berth.ErrStale) {
		m.err = cmp.Or(m.err, err)
	}
}

// enter is called when the hold is there. It returns false if it has run out on its way.
func (m *mixer) enter(h berth.Hold) bool {
	// The time is read first: who is paused in between is not said to be inside.
	began, good := time.Duration(history.Monotonic()), h.Left()
	if good <= 0 {
		return false
	}
	m.note(entered|int64(good)<<8, h, began)
	return true
}

// leave is called before what is held is given back.
func (m *mixer) leave(h berth.Hold) {
	// In this order: who still held it then held it at that moment.
	at, what := time.Duration(history.Monotonic()), int64(left)
	if h.Err() != nil {
		what = ousted
	}
	m.note(what, h, at)
}

// hold takes a hold, does something else with that of a pool, and releases.
func (m *mixer) hold(ctx context.Context) {
	h, err := m.take(ctx)
	m.ops++
	if err != nil {
		m.check(err)
		return
	}
	if !m.enter(h) {
		m.check(h.Release(ctx))
		return
	}
	if m.servant.dies.Load() {
		self, err := os.FindProcess(os.Getpid())
		m.err = cmp.Or(m.err, err, self.Kill(), context.Cause(ctx))
		return
	}
	if a, ok := h.(*allocation); ok && !m.use(ctx, a) {
		m.check(h.Release(ctx))
		return
	}
	m.leave(h)
	m.check(h.Release(ctx))
	m.ops++
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

// use does something else with a resource. It returns false if the hold has run out.
func (m *mixer) use(ctx context.Context, a *allocation) bool {
	switch rand.N(10) {
	case 0, 1:
		m.meddle(ctx, m.servant.pool(m.order))
	case 2, 3:
		if !m.swap(ctx, a) {
			return false
		}
	}
	if rand.N(10) == 0 {
		_ = a.Rest(time.Duration(1+rand.N(10))*time.Millisecond, "it was too much")
	}
	return true
}

// swap takes another resource for the one that is held. While it is on its way, there
// is no telling which of the two it is. It returns false if that has run out.
func (m *mixer) swap(ctx context.Context, a *allocation) bool {
	fence := a.Fence()
	m.leave(a)
	err := a.Swap(ctx)
	m.ops++
	if errors.Is(err, berth.ErrBusy) {
		err = nil
	}
	if err == nil && a.Fence() != fence {
		return m.enter(a)
	}
	// It has it still, or nothing: what follows is the same stay.
	m.check(err)
	m.note(back, a, time.Duration(history.Monotonic()))
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
			m.ops++
			_, err = p.Add(ctx, []string{resource}, nil)
		}
	}
	m.check(err)
	m.ops++
}

// stay is one inside a hold. Who was killed inside was there until then, or for as long
// as the hold was good.
type stay struct {
	resource, fence int64
	start, end      time.Duration
	how             int64 // entered if it never ended
}

// exclusion is processes that hold the contended name again and again, and some of which are
// killed and replaced.
type exclusion struct {
	*world
	dir     string
	lease   time.Duration
	crew    []*child
	works   []<-chan answer // of the crew
	paths   []string        // of all that ever were
	current []int           // of the crew, into paths
	killed  []time.Duration // by path, 0 for those that were not
	ends    int             // how many were told to die in the midst of a stay
	signals int             // how many were killed at any moment
	start   time.Time
}

func (w *world) exclusion(processes int, lease time.Duration) *exclusion {
	w.Helper()
	w.Relies(lease)
	x := &exclusion{
		world: w.turn(), dir: w.TempDir(), lease: lease, crew: make([]*child, processes),
		works: make([]<-chan answer, processes), current: make([]int, processes), start: time.Now(),
	}
	for i := range x.crew {
		x.replace(i)
	}
	return x
}

func (x *exclusion) replace(i int) {
	x.Helper()
	path := filepath.Join(x.dir, fmt.Sprint(len(x.paths)))
	x.paths, x.killed, x.current[i] = append(x.paths, path), append(x.killed, 0), len(x.paths)
	x.crew[i] = x.spawn(x.lease)
	x.works[i] = x.crew[i].send(order{Do: "mix", Name: x.name(), Path: path})
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
		x.killed[x.current[i]] = time.Duration(history.Monotonic())
		x.crew[i].kill()
	}
	x.replace(i)
}

// goOn waits until all workers together have ended so many operations, by their last records.
func (x *exclusion) goOn(until int64) {
	x.Helper()
	x.Await("the operations go on", func() bool { return x.operations() >= until })
}

func (x *exclusion) operations() (all int64) {
	x.Helper()
	for _, path := range x.paths {
		text, err := os.ReadFile(path)
		require.True(x, err == nil || os.IsNotExist(err), err)
		if n := len(text) / recordSize; n > 0 {
			all += int64(binary.LittleEndian.Uint64(text[n*recordSize-8:]) >> 8)
		}
	}
	return all
}

// stop ends all, and checks that no two stays in one thing met.
func (x *exclusion) stop() {
	x.Helper()
	for i, c := range x.crew {
		require.Empty(x, c.ask(order{Do: "enough", Name: x.name()}).Err)
		require.Empty(x, c.hear(x.works[i]).Err)
		c.kill()
	}
	took := time.Since(x.start)
	of, count, fences := map[int64][]stay{}, map[int64]int{}, map[int64]bool{}
	for i, path := range x.paths {
		for _, s := range x.stays(path, x.killed[i]) {
			count[s.how]++
			of[s.resource] = append(of[s.resource], s)
			require.False(x, fences[s.fence], "two holds with the fence %d", s.fence)
			fences[s.fence] = true
		}
	}
	for _, stays := range of {
		x.exclusive(stays)
	}
	x.Logf("%d operations of %d workers in %v, %d stays in %d things; %d were killed at any moment and %d within a stay; %d never ended, %d were ousted",
		x.operations(), len(x.crew), took.Round(100*time.Millisecond), len(fences), len(of), x.signals, x.ends, count[entered], count[ousted])
	require.GreaterOrEqual(x, count[entered], x.ends)
	require.LessOrEqual(x, count[entered], x.ends+x.signals)
	// So many can have run out, if none ended before its own time: a push is believed for half a wait lease.
	most := len(of) * (1 + int(took/(x.lease/2-heartbeat.Margin(x.lease))))
	require.LessOrEqual(x, count[ousted], most, "holds have ended before their time")
}

// stays reads what a child has written until it was killed, if it was.
func (x *exclusion) stays(path string, killed time.Duration) (all []stay) {
	x.Helper()
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil // it was killed first
	}
	require.NoError(x, err)
	require.Zero(x, len(text)%recordSize, "%s ends within a record", path)
	for ; len(text) > 0; text = text[recordSize:] {
		number := func(i int) int64 { return int64(binary.LittleEndian.Uint64(text[8*i:])) }
		what, fence, at := number(0)&0xff, number(1), time.Duration(number(2))
		if what == entered {
			good := time.Duration(number(0) >> 8)
			all = append(all, stay{number(3) & 0xff, fence, at, max(at, min(killed, at+good)), entered})
			continue
		}
		last := &all[len(all)-1]
		require.Equal(x, last.fence, fence)
		if what == back {
			last.how = entered
			continue
		}
		last.end, last.how = at, what
	}
	return all
}

// exclusive checks that no two stays in one thing met.
func (w *world) exclusive(all []stay) {
	w.Helper()
	slices.SortFunc(all, func(a, b stay) int { return cmp.Compare(a.fence, b.fence) })
	for i := 1; i < len(all); i++ {
		before, after := all[i-1], all[i]
		if before.start >= after.start {
			require.Fail(w, "fences do not rise in the order of the stays", "%+v\n%+v", before, after)
		}
		if before.how != ousted && before.end >= after.start {
			require.Fail(w, "two were inside at once", "%+v\n%+v", before, after)
		}
	}
}

func TestSixteenProcessesExcludeEachOther(t *testing.T) {
	const processes, kills, rounds = 16, 3, 3
	w := private(t).of(keyspace.Lock)
	operations := int64(2 * 1000 * amount.Times()) // of each stay its beginning and its end
	x := w.exclusion(processes, 2*time.Second)
	for round := range int64(rounds) {
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
	for next := int64(every); next <= operations; next += every {
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
