package integration

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// town has so many names that are held, and some more for which somebody waits.
func (w *world) town(names, contended int) {
	w.Helper()
	w.thinNames(names)
	holds, waits := w.node(node.Config{Label: "town/holds"}), w.node(node.Config{Label: "town/waits"})
	for i := range contended {
		name := fmt.Sprintf("busy-%02d", i)
		w.take(w.sem(holds, name, 1), nil)
		w.begin(w.sem(waits, name, 1), nil)
	}
}

// jam is what is acted on: a semaphore that two hold and most wait for, a pool that is leased, and a lock.
type jam struct {
	sem, lock, pool string
	first, second   *semaphore.Permit // which holds longest; which gives back when it is asked, and may
	may             chan struct{}
	waits           []*taking // in line
}

func (w *world) jam(name string, waiting int) *jam {
	w.Helper()
	j := &jam{sem: "sem-" + name, lock: "lock-" + name, pool: "pool-" + name, may: make(chan struct{})}
	first, second := w.node(node.Config{Label: "host-1/first"}), w.node(node.Config{Label: "host-2/second"})
	j.first, j.second = w.take(w.sem(first, j.sem, 2), nil), w.take(w.sem(second, j.sem, 2), nil)
	go func() {
		select {
		case <-j.second.Wanted():
			select {
			case <-j.may:
				_ = j.second.Release(context.Background())
			case <-j.second.Done():
			}
		case <-j.second.Done():
		}
	}()
	waits := w.node(node.Config{Label: "host-3/waits"})
	for i := range waiting {
		j.waits = append(j.waits, w.queue(w.sem(waits, j.sem, 2), nil, i+1))
	}
	locks := w.locker(node.Config{Label: "host-4/lock"})
	_, err := locks.Lock(w.Within(patience), j.lock, nil)
	require.NoError(w, err)
	testkit.Begin(w.Within(2*patience), func(ctx context.Context) (*qlock.Lock, error) { return locks.Lock(ctx, j.lock, nil) })
	pool := poolOf(w.node(node.Config{Label: "host-5/pool"}), j.pool, poolConfig{})
	w.add(pool, "p1", "p2")
	for range 2 {
		_, err = pool.Allocate(w.Within(patience), nil)
		require.NoError(w, err)
	}
	testkit.Begin(w.Within(2*patience), func(ctx context.Context) (*allocation, error) { return pool.Allocate(ctx, nil) })
	return j
}

// Each key of berth top, in the smallest and in a large window, on a server with 10 000 names.
func TestTopInATerminal(t *testing.T) {
	w := private(t).turn()
	program := w.berth()
	w.town(10_000, 80)
	for i, size := range [][2]int{{80, 24}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			in := *w
			in.Patient = testkit.RealTime(t)
			j := in.jam(fmt.Sprint(size[0]), 5+i)
			term := in.runAt(size[0], size[1], program, "top")
			term.list(j)
			term.name(j)
			term.acts(j)
			term.rests(j)
			term.window()
			term.press("q")
			term.shows("ended with 0", "the terminal is as it was")
		})
	}
}

// list presses the keys of the list. Where the cursor is to be in a row the rows are those of a page, which is not read anew.
func (t *terminal) list(j *jam) {
	t.Helper()
	t.Log(t.shows("The most contended names, most waiting first", "> sem "+j.sem+" 2/2", "full", "/ 1 of [0-9]+/", "q ends"))
	t.press("Tab")
	t.shows("The most contended semaphores")
	t.press("Tab")
	t.shows("The most contended locks", j.lock+" 1/1")
	t.press("Tab")
	t.shows("The most contended pools", j.pool+" 2/2")
	t.press("Tab")
	t.shows("The most contended names")
	for _, order := range []string{"longest wait first", "longest hold first", "by name", "most waiting first"} {
		t.press("s")
		t.shows(order)
	}
	t.press("?")
	t.shows("r release the selected claim", "any key goes back")
	t.press("q")
	t.shows("The most contended names")
	t.press("c")
	t.shows("Circles: claims that wait for each other", "2 circles found among", "by node: possible", "To end it, release")
	t.press("Escape")
	t.shows("The most contended names")
	t.press("a")
	t.shows("All names in use, page 1", "/ 1 of [1-3]../", "> for more")
	t.press("j")
	t.shows("/ 2 of /")
	t.press("Up")
	t.shows("/ 1 of /")
	t.press("NPage")
	t.shows(fmt.Sprintf("/ %d of /", t.height-5))
	t.press("PPage")
	t.shows("/ 1 of /")
	t.press("G")
	t.shows("/ ([1-3]..) of [1-3]../")
	t.press("g")
	t.shows("/ 1 of /")
	t.press(">")
	t.shows("All names in use, page 2")
	t.press("<")
	t.shows("All names in use, page 1")
	t.press(".")
	t.shows("All names in use, page 1", "> for more")
	t.press("/")
	t.types("x00999")
	t.shows("only those that begin with: x00999", "x009990 1/1", "x009999 1/1")
	t.press("a")
	t.shows("The most contended names")
	t.press("/")
	t.types("no-such")
	t.shows("None of them matches the filter")
	t.press("Escape")
	t.shows("> sem "+j.sem, "/ 1 of [0-9]+/")
	t.press("/")
	t.types(j.sem)
	t.shows("only those with: "+j.sem, "> sem "+j.sem)
}

// name presses the keys of a name.
func (t *terminal) name(j *jam) {
	t.Helper()
	t.press("Enter")
	t.Log(t.shows("semaphore "+j.sem, "full: 2 of 2 held", fmt.Sprintf(`%d wait for semaphore "%s"`, len(j.waits), j.sem), "Held by 2 claims",
		fmt.Sprintf("In line %d claims", len(j.waits)), "host-1/first has held it for"))
	t.press("j")
	t.shows("host-2/second has held it for")
	t.press("j")
	t.shows("host-3/waits has waited")
	t.press("Enter")
	t.shows("/claim [0-9a-f]{16}/", "ahead 0", "priority 0", "up down scroll")
	t.press("Escape")
	t.shows("Held by 2 claims")
	t.press("x")
	t.shows(fmt.Sprintf(`%d wait for semaphore "%s"`, len(j.waits), j.sem), "up down scroll")
	t.press("Escape")
	t.shows("Held by 2 claims")
	t.press("n")
	t.shows("Claims of node ", "/ claims?, /")
	t.press("Escape")
	t.shows("Held by 2 claims")
}

// acts presses the keys that act on a semaphore.
func (t *terminal) acts(j *jam) {
	t.Helper()
	read := t.reader()
	t.press("p")
	t.shows("For how long?")
	t.types("soon")
	t.shows("! this is not a time")
	t.press("C-u")
	t.types("1h")
	t.shows("Why?")
	t.types("deploy")
	t.Log(t.shows(fmt.Sprintf(`Pause semaphore "%s" for 1h00m.`, j.sem), `The reason: "deploy"`, "Do this?"))
	t.press("n")
	t.shows("nothing was done")
	require.Nil(t, read.Look(keyspace.Sem, j.sem).Pause)
	t.press("p")
	t.types("1h")
	t.types("deploy")
	t.confirms("Pause semaphore")
	t.shows("pause "+j.sem+": paused for 1h00m", `more: "deploy"`)
	require.Equal(t, "deploy", read.Look(keyspace.Sem, j.sem).Pause.Reason)
	t.press("u", "Enter")
	t.confirms("End the pause of semaphore")
	t.shows("unpause "+j.sem+": no longer paused", "full: 2 of 2 held")

	t.press("z")
	t.types("3")
	t.types("")
	t.types("")
	t.confirms("Set the capacity of semaphore")
	t.shows("resize "+j.sem+": the capacity is 3", "full: 3 of 3 held", "Held by 3 claims")
	third := j.waits[0].Wait(t)
	require.NoError(t, third.Err())

	t.press("G")
	t.shows("host-3/waits has waited")
	t.press("r")
	t.types("stuck")
	t.confirms("Release claim", "by force", `The reason: "stuck"`)
	t.shows("release "+j.sem+": the claim is released", "This is not there any more")
	j.waits[len(j.waits)-1].Fails(t, berth.ErrNotAcquired)
	t.press("r")
	t.shows("release: the selected one is not there any more; select another")

	t.press("g", "j")
	t.shows("host-2/second has held it for")
	t.press("d", "Enter", "Enter")
	t.confirms(`Drain node "` + j.second.Node() + `"`)
	t.shows("is under way", "1 action under way")
	close(j.may)
	t.Await("the drained process has given back", func() bool { return j.second.Err() != nil })
	t.shows("drain "+j.second.Node()+":", "0 left") // it has walked over all names again since
	t.press("g")
	t.shows("host-1/first has held it for")
	t.press("n")
	t.shows("Claims of node " + j.first.Node())
	t.press("d", "Enter", "Enter")
	t.confirms("Drain node")
	t.shows("is under way")
	t.press("D", "Enter")
	t.confirms("End the drain of node")
	t.shows("undrain " + j.first.Node() + ":")
	t.press("Escape")
	t.shows("Held by 3 claims")
	t.press("Escape")
	t.shows("The most contended names")
}

// rests presses the keys of a pool.
func (t *terminal) rests(j *jam) {
	t.Helper()
	t.press("Escape")
	t.shows("/ of [0-9]{2,} /")
	t.press("/")
	t.types(j.pool)
	t.shows("> pool " + j.pool)
	t.press("Enter")
	t.shows("pool "+j.pool, "Held by 2 claims", "Resources that are held")
	t.press("G")
	t.shows("Resource p2 is held by 1 claim")
	t.press("t")
	t.types("10m")
	t.types("")
	t.shows("! a rest needs one")
	t.types("banned")
	t.confirms(`Let resource "p2" of pool "` + j.pool + `" rest for 10m00s`)
	t.shows("rest "+j.pool+": rests", "It then rests for", `The reason: "banned"`)
	t.press("t")
	t.types("0")
	t.types("")
	t.confirms(`End the rest of resource "p2"`)
	t.shows("rest " + j.pool + ": rests no more")
}

// window changes the size of the window.
func (t *terminal) window() {
	t.Helper()
	t.resize(30, 8)
	t.shows("The window is too small: it has 30x8")
	t.resize(120, 30)
	t.shows("pool pool-", "Resources that are held")
	t.resize(t.width, t.height)
	t.shows("pool pool-", "Resources that are held")
}

// A server that is away leaves the rows with their age; it is read again when it is back.
func TestTopWaitsForAServerThatIsAway(t *testing.T) {
	w := private(t)
	program := w.berth()
	w.jam("busy", 3)
	term := w.runAt(80, 24, program, "top")
	term.shows("> sem sem-busy 2/2 3")
	term.press("Enter")
	term.shows("In line 3 claims")
	term.press("G", "n")
	term.shows("Claims of node ", "3 claims", "> sem sem-busy waits")
	term.press("Enter")
	term.shows("semaphore sem-busy", "> waits")
	term.press("Escape")
	term.shows("Claims of node ")
	term.press("Escape")
	term.shows("In line 3 claims")
	term.press("Escape")
	term.shows("> sem sem-busy 2/2 3")
	w.server.Stop(t)
	term.shows("old: the server has not answered since", "> sem sem-busy 2/2 3")
	w.server.Cont(t)
	w.do("PING")
	term.shows("/> sem sem-busy 2/2 3 .* full [0-2]s /")
	w.server.Kill(t)
	term.shows("old, and cannot be read anew:", "> sem sem-busy 2/2 3")
	w.server.Restart(t)
	_, err := w.node(node.Config{}).Operator().Sweep(w.Within(patience), "")
	require.NoError(t, err)
	term.press("a")
	term.shows("All names in use")
	term.press("q")
	term.shows("ended with 0", "the terminal is as it was")
}
