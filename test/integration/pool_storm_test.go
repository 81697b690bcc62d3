package integration

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/test/torture/history"
)

// stormResources are those of the storm. They are fewer than its workers, so that
// there is always somebody who waits.
var stormResources = numbered(8)

// mixer is one worker of the storm. The last number of a record of its file is how
// many operations it has ended, and which resource the record is about.
type mixer struct {
	servant *poolServant
	pool    *pool
	file    *os.File
	ops     int64
	err     error
}

// mix does all operations that there are, again and again.
func (c *poolServant) mix(ctx context.Context, p *pool, o order) error {
	file, err := os.OpenFile(o.Path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // each record was written through
	m := &mixer{servant: c, pool: p, file: file}
	for !c.done.Load() && m.err == nil {
		within, cancel := context.WithTimeout(ctx, patience)
		m.hold(within)
		cancel()
	}
	return m.err
}

// note writes a record.
func (m *mixer) note(what int64, a *allocation, at time.Duration) {
	var index int64
	if _, failed := fmt.Sscanf(a.Resource(), "r%d", &index); failed != nil {
		m.err = cmp.Or(m.err, failed)
	}
	m.err = cmp.Or(m.err, stamp(m.file, what, a.Fence(), at, m.ops<<8|index))
}

// check keeps the first error. One that says that the hold has ended is none: the
// lease may have been too short for the machine.
func (m *mixer) check(err error) {
	if err != nil && !errors.Is(err, berth.ErrNotHeld) && !errors.Is(err, berth.ErrAbsent) && !errors.Is(err, berth.ErrStale) {
		m.err = cmp.Or(m.err, err)
	}
}

// enter is called when the hold is there. It returns false if it has run out on its way.
func (m *mixer) enter(a *allocation) bool {
	began, good := time.Duration(history.Monotonic()), a.Left()
	if good <= 0 {
		return false
	}
	m.note(begins(good), a, began)
	return true
}

// leave is called before the hold's resource is given back.
func (m *mixer) leave(a *allocation) {
	// In this order: who still held it then held it at that moment.
	at, what := time.Duration(history.Monotonic()), int64(left)
	if a.Err() != nil {
		what = ousted
	}
	m.note(what, a, at)
}

// hold allocates, does something else, and releases.
func (m *mixer) hold(ctx context.Context) {
	opts := &allocator.AllocateOptions{Priority: rand.N(2)}
	if rand.N(4) == 0 {
		opts.Bind, opts.BindFor = fmt.Sprint("customer ", rand.N(10)), time.Minute
	}
	a, err := m.pool.Allocate(ctx, opts)
	m.ops++
	if err != nil {
		m.check(err)
		return
	}
	if !m.enter(a) {
		m.check(a.Release(ctx))
		return
	}
	if m.servant.dies.Load() {
		m.err = cmp.Or(m.err, killSelf(), context.Cause(ctx))
		return
	}
	switch rand.N(10) {
	case 0, 1:
		m.meddle(ctx)
	case 2, 3:
		if !m.swap(ctx, a) {
			m.check(a.Release(ctx))
			return
		}
	}
	if rand.N(10) == 0 {
		_ = a.Rest(time.Duration(1+rand.N(10))*time.Millisecond, "it was too much")
	}
	m.leave(a)
	m.check(a.Release(ctx))
	m.ops++
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
func (m *mixer) meddle(ctx context.Context) {
	resource := stormResources[rand.N(len(stormResources))]
	var err error
	switch rand.N(5) {
	case 0:
		err = m.pool.Rest(ctx, resource, time.Duration(rand.N(10))*time.Millisecond, "an operator", nil)
	case 1:
		err = m.pool.Bind(ctx, fmt.Sprint("customer ", rand.N(10)), resource, nil)
	case 2:
		err = m.pool.Unbind(ctx, fmt.Sprint("customer ", rand.N(10)))
	default:
		if _, err = m.pool.Remove(ctx, []string{resource}); err == nil {
			m.ops++
			_, err = m.pool.Add(ctx, []string{resource}, nil)
		}
	}
	m.check(err)
	m.ops++
}

// operations are how many all workers have ended, by their last records.
func (x *exclusion) operations() (n int64) {
	x.Helper()
	for _, path := range x.paths {
		file, err := os.Open(path)
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(x, err)
		end, err := file.Seek(0, io.SeekEnd)
		require.NoError(x, err)
		var record [recordSize]byte
		if end >= recordSize {
			_, err = file.ReadAt(record[:], end/recordSize*recordSize-recordSize)
			require.NoError(x, err)
		}
		require.NoError(x, file.Close())
		n += int64(binary.LittleEndian.Uint64(record[24:]) >> 8)
	}
	return n
}

// readHolds reads the stays of all workers, by resource.
func (x *exclusion) readHolds() (byResource map[int64][]section, count map[int64]int) {
	x.Helper()
	byResource, count = map[int64][]section{}, map[int64]int{}
	for i, path := range x.paths {
		for _, s := range x.readSections(path, x.killed[i]) {
			count[s.how]++
			byResource[s.more&0xff] = append(byResource[s.more&0xff], s)
		}
	}
	return byResource, count
}

func TestNoResourceHasTwoHoldersWhateverHappens(t *testing.T) {
	const steady, vanishing, operations, lease = 8, 2, 8000, 2 * time.Second
	w := privatePools(t).turn()
	w.Relies(lease)
	x := &exclusion{
		world: w, dir: t.TempDir(), work: order{Do: "mix", Name: proxies}, lease: lease, crew: make([]*child, steady+vanishing),
		works: make([]<-chan answer, steady+vanishing), current: make([]int, steady+vanishing),
	}
	p := w.pool(node.Config{})
	w.add(p, stormResources...)
	start := time.Now()
	for i := range x.crew {
		x.replace(i)
	}
	const every = 500
	inspections, moving := 0, 0
	for next := int64(every); next <= operations; next += every {
		w.awaitFor(patience, "the operations go on", func() bool { return x.operations() >= next })
		if w.inspected(p).Moving {
			moving++
		}
		inspections++
		if next%(4*every) == 0 {
			x.kill(steady + rand.N(vanishing))
		}
	}
	x.stop()
	took := time.Since(start)

	total := x.operations()
	byResource, count := x.readHolds()
	holds := 0
	var all []section
	for resource, holdsOf := range byResource {
		w.exclusive(holdsOf)
		holds += len(holdsOf)
		all = append(all, holdsOf...)
		require.Contains(w, stormResources, fmt.Sprint("r", resource))
	}
	fences := map[int64]bool{}
	for _, s := range all {
		require.False(w, fences[s.fence], "two holds with the fence %d", s.fence)
		fences[s.fence] = true
	}
	w.add(p, stormResources...) // some were removed by those who died before they could add them again
	w.Await("the dead have lost what they had, and all have rested", func() bool {
		_, err := p.node.Operator().Sweep(w.Within(patience), keyspace.Pool, proxies) // nobody else is left to sweep
		require.NoError(w, err)
		n := w.reader().Look(keyspace.Pool, proxies)
		require.Equal(w, n.Capacity, n.Pool.Free+n.Held+n.Pool.Resting)
		return n.Pool.Free == n.Capacity && n.Waiting == 0
	})
	t.Logf("%d operations of %d workers in %v, %d holds of %d resources; %d were killed at any moment and %d within a hold; %d holds never ended, %d were ousted; %d times whole, %d of them moving",
		total, steady+vanishing, took.Round(100*time.Millisecond), holds, len(stormResources), x.signals, x.ends,
		count[entered], count[ousted], inspections, moving)
	require.GreaterOrEqual(t, total, int64(operations))
	require.GreaterOrEqual(t, inspections, operations/every)
	require.Zero(t, moving, "a small pool is inspected in one step")
	require.GreaterOrEqual(t, count[entered], x.ends)
	require.LessOrEqual(t, count[entered], x.ends+x.signals)
	require.LessOrEqual(w, count[ousted], len(stormResources)*x.mostOusted(took), "holds have ended before their time")
	w.tombstones(proxies)
	w.allFree(p, len(stormResources))
}
