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
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/test/torture/history"
)

// The records of a file of sections: a number of 8 bytes each for what happened (of what
// begins: and for how long it was good, in ns, shifted by 8 bits), the fence, CLOCK_MONOTONIC, and what else there is to say. What is written is there after a kill -9; a
// record never crosses a page, so it is there whole.
const (
	entered = iota + 1 // after Lock has returned
	left               // before Release is sent, and the lock was still held
	ousted             // the same, but the hold had ended before
	back               // the stay goes on, though its end was written

	recordSize = 32
)

// sections locks again and again. Some holds end by their lease before they are
// entered or released, as the machine had others to run.
func (c *lockServant) sections(ctx context.Context, o order) error {
	file, err := os.OpenFile(o.Path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // each record was written through
	for !c.done.Load() {
		if err := c.section(ctx, o.Name, file); err != nil && !errors.Is(err, berth.ErrNotHeld) {
			return err
		}
	}
	return nil
}

func (c *lockServant) section(ctx context.Context, name string, file *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lock, err := c.Lock(ctx, name, nil)
	if err != nil {
		return err
	}
	write := func(what, fence int64, at time.Duration) { err = cmp.Or(err, stamp(file, what, fence, at, 0)) }
	began, good := time.Duration(history.Monotonic()), lock.Left()
	if good <= 0 {
		return lock.Release(ctx) // it has run out on its way here
	}
	write(begins(good), lock.Fence(), began)
	if c.dies.Load() {
		return cmp.Or(killSelf(), context.Cause(ctx))
	}
	// In this order: who still held it then held it at that moment.
	at, what := time.Duration(history.Monotonic()), int64(left)
	if lock.Err() != nil {
		what = ousted
	}
	write(what, lock.Fence(), at)
	if released := lock.Release(ctx); what == left {
		err = cmp.Or(err, released)
	}
	return err
}

// begins is what a record says of a hold that is good for so long from its time on: the
// time is read first, so who is paused in between is not said to be inside.
func begins(good time.Duration) int64 { return entered | int64(good)<<8 }

// stamp writes a record.
func stamp(file *os.File, what, fence int64, at time.Duration, more int64) error {
	var record [recordSize]byte
	for i, value := range []int64{what, fence, int64(at), more} {
		binary.LittleEndian.PutUint64(record[8*i:], uint64(value))
	}
	_, err := file.Write(record[:])
	return err
}

// killSelf ends this process as kill -9 does.
func killSelf() error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	return self.Kill()
}

// section is one stay inside the lock. Who was killed inside was there until then, or for
// as long as the hold was good.
type section struct {
	fence      int64
	start, end time.Duration
	how        int64 // entered if it never ended
	more       int64
}

// readSections reads what a child has written until it was killed, if it was.
func (w *world) readSections(path string, killed time.Duration) (all []section) {
	w.Helper()
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil // it was killed first
	}
	require.NoError(w, err)
	require.Zero(w, len(text)%recordSize, "%s ends within a record", path)
	for ; len(text) > 0; text = text[recordSize:] {
		number := func(i int) int64 { return int64(binary.LittleEndian.Uint64(text[8*i:])) }
		what, fence, at := number(0)&0xff, number(1), time.Duration(number(2))
		if what == entered {
			good := time.Duration(number(0) >> 8)
			all = append(all, section{fence: fence, start: at, end: max(at, min(killed, at+good)), how: entered, more: number(3)})
			continue
		}
		last := &all[len(all)-1]
		require.Equal(w, last.fence, fence)
		if what == back {
			last.how = entered
			continue
		}
		last.end, last.how = at, what
	}
	return all
}

// exclusion is processes that lock one name again and again, and some of which
// are killed and replaced.
type exclusion struct {
	*world
	dir     string
	work    order // but for its path
	lease   time.Duration
	crew    []*child
	works   []<-chan answer // of the sections of the crew
	paths   []string        // of all that ever were
	current []int           // of the crew, into paths
	killed  []time.Duration // by path, 0 for those that were not
	ends    int             // how many were told to die in the midst of a section
	signals int             // how many were killed at any moment
}

func (x *exclusion) replace(i int) {
	x.Helper()
	path := filepath.Join(x.dir, fmt.Sprint(len(x.paths)))
	x.paths, x.killed, x.current[i] = append(x.paths, path), append(x.killed, 0), len(x.paths)
	x.crew[i] = x.spawn(x.lease)
	o := x.work
	o.Path = path
	x.works[i] = x.crew[i].send(o)
}

// kill ends one of the crew, half of the time in the midst of a section.
func (x *exclusion) kill(i int) {
	x.Helper()
	if rand.N(2) == 0 {
		x.ends++
		x.crew[i].send(order{Do: "die", Name: x.work.Name}) // it may not live to answer
		x.Signalled("it has died", x.crew[i].ended)
	} else {
		x.signals++
		x.killed[x.current[i]] = time.Duration(history.Monotonic())
		x.crew[i].kill()
	}
	x.replace(i)
}

// entries is how many sections have begun.
func (x *exclusion) entries() (n int64) {
	for _, path := range x.paths {
		if file, err := os.Stat(path); err == nil {
			n += (file.Size() + recordSize) / (2 * recordSize)
		}
	}
	return n
}

func (x *exclusion) stop() {
	x.Helper()
	for i, c := range x.crew {
		require.Empty(x, c.ask(order{Do: "enough", Name: x.work.Name}).Err)
		require.Empty(x, c.hear(x.works[i]).Err)
		c.kill()
	}
}

// check reads all sections, in the order of their fences.
func (x *exclusion) check() (all []section) {
	x.Helper()
	for i, path := range x.paths {
		all = append(all, x.readSections(path, x.killed[i])...)
	}
	x.exclusive(all)
	return all
}

// exclusive checks that no two sections of one thing met, and puts them in the order
// of their fences.
func (w *world) exclusive(all []section) {
	w.Helper()
	slices.SortFunc(all, func(a, b section) int { return cmp.Compare(a.fence, b.fence) })
	for i := 1; i < len(all); i++ {
		before, after := all[i-1], all[i]
		if before.fence == after.fence {
			require.Fail(w, "two sections with one fence", "%+v\n%+v", before, after)
		}
		if before.start >= after.start {
			require.Fail(w, "fences do not rise in the order of the sections", "%+v\n%+v", before, after)
		}
		if before.how != ousted && before.end >= after.start {
			require.Fail(w, "two were inside at once", "%+v\n%+v", before, after)
		}
	}
}

// mostOusted is how many holds of one thing can have run out in a time, if none ended
// before its own: a push is believed for half a wait lease.
func (x *exclusion) mostOusted(took time.Duration) int {
	return 1 + int(took/(x.lease/2-heartbeat.Margin(x.lease)))
}

func TestSixteenProcessesExcludeEachOther(t *testing.T) {
	const processes, lease = 16, 2 * time.Second
	const kills, rounds = 3, 3
	sections := 1000 * amount.Times()
	w := privateLocks(t).turn()
	w.Relies(lease)
	x := &exclusion{
		world: w, dir: t.TempDir(), work: order{Do: "sections", Name: door}, lease: lease, crew: make([]*child, processes),
		works: make([]<-chan answer, processes), current: make([]int, processes),
	}
	start := time.Now()
	for i := range x.crew {
		x.replace(i)
	}
	for round := 1; round <= rounds; round++ {
		w.awaitFor(3*time.Minute, "the sections go on", func() bool { return x.entries() >= int64(round*sections/(rounds+1)) })
		for _, i := range rand.Perm(processes)[:1+rand.N(kills)] {
			x.kill(i)
		}
	}
	w.awaitFor(3*time.Minute, "all sections", func() bool { return x.entries() >= int64(sections) })
	x.stop()
	took := time.Since(start)

	all := x.check()
	count := map[int64]int{}
	for _, s := range all {
		count[s.how]++
	}
	t.Logf("%d sections of %d processes in %v; %d were killed at any moment and %d in the midst of a section; %d sections never ended, %d were ousted",
		len(all), processes, took.Round(100*time.Millisecond), x.signals, x.ends, count[entered], count[ousted])
	require.GreaterOrEqual(t, len(all), sections)
	require.GreaterOrEqual(t, count[entered], x.ends)
	require.LessOrEqual(t, count[entered], x.ends+x.signals)
	require.LessOrEqual(t, count[ousted], x.mostOusted(took), "holds have ended before their time")
	c := w.locker(node.Config{})
	w.unlock(w.lock(c, nil))
}

// awaitFor is await with a limit of its own.
func (w *world) awaitFor(limit time.Duration, what string, cond func() bool) {
	w.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); !cond(); <-tick.C {
		if time.Now().After(end) {
			require.FailNow(w, "waited too long", "until %s", what)
		}
	}
}
