package reader_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

const (
	name = "gpu"
	ms   = time.Millisecond
)

var kinds = map[keyspace.Kind]string{keyspace.Sem: "semaphore", keyspace.Lock: "lock", keyspace.Pool: "pool"}

// world has one name, whose claims a test makes by scripts alone.
type world struct {
	*testkit.World
	space  keyspace.Space
	kind   keyspace.Kind
	reader *reader.Reader
	made   int // operators' calls
}

func inWorld(t *testing.T, kind keyspace.Kind, test func(t *testing.T, w *world)) {
	t.Helper()
	space := testkit.Must(keyspace.New("berth")).In(t)
	testkit.In(t, name, space.State(kind, name), space.Line(kind, name), func(t *testing.T, w *testkit.World) {
		if kind == keyspace.Pool {
			for _, part := range []string{keyspace.ItemsPart, keyspace.FreePart, keyspace.BindingsPart} {
				w.Others = append(w.Others, space.Key(kind, name, part))
			}
		}
		run := scriptkit.NewRunner(w.Redis, scriptkit.Options{})
		test(t, &world{World: w, space: space, kind: kind, reader: reader.New(run, space, false)})
	})
}

// inWorldOf runs one row of a table in a world of its own.
func inWorldOf(t *testing.T, row string, kind keyspace.Kind, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run(row, func(t *testing.T) { inWorld(t, kind, test) })
}

// write runs a script of the kind that writes the name, and returns its status.
func (w *world) write(verb string, args ...string) string {
	w.T.Helper()
	r := w.Call(kinds[w.kind]+"_"+verb, append([]string{"60000", "berth:wake:", name}, args...)...)
	return r.Status()
}

// ask has a claim of its own node ask, which waits where it has to.
func (w *world) ask(claim string, own []string, change ...func(*state.Record)) string {
	w.T.Helper()
	r := state.Record{Weight: 1, Wait: time.Minute, Lease: time.Minute, Phase: 'w', Node: "node-" + claim}
	if w.kind == keyspace.Pool {
		r.Extra = "o 0 - 0 0:"
	}
	for _, c := range change {
		c(&r)
	}
	reply := w.Acquires(kinds[w.kind], r.Node, claim, &r, "1", "stored", own...)
	return reply.Status()
}

// semaphore asks for a permit of so many.
func (w *world) semaphore(claim string, capacity int, change ...func(*state.Record)) string {
	w.T.Helper()
	return w.ask(claim, []string{state.Calm(capacity)}, change...)
}

func lasts(wait, lease time.Duration) func(*state.Record) {
	return func(r *state.Record) { r.Wait, r.Lease = wait, lease }
}

// release gives a hold or a wait back.
func (w *world) release(claim string) {
	w.T.Helper()
	own := map[keyspace.Kind][]string{keyspace.Pool: {"0", "", "0", "0"}}[w.kind]
	w.Releases(kinds[w.kind], "node-"+claim, claim, 0, own...)
}

// row is the name as it is read now.
func (w *world) row() reader.Row {
	w.T.Helper()
	return testkit.Must(w.reader.Name(ctx, w.kind, name)).In(w.T)
}

func id(prefix string, n int) string { return fmt.Sprintf("%s.%d", prefix, n) }

// pages has a listing be read page by page, and says how many there are, a thousand at the most.
func pages(read func(cursor string) (next string)) (n int) {
	for next := ""; n == 0 || next != "" && n < 1000; n++ {
		next = read(next)
	}
	return n
}

// sems are the semaphores of a client's servers.
func sems(client rueidis.Client) reader.Walk {
	return reader.Walk{Redis: client, Kinds: []keyspace.Kind{keyspace.Sem}}
}
