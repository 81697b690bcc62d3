package reader_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/model"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
	space, err := keyspace.New("berth")
	require.NoError(t, err)
	testkit.In(t, name, space.State(kind, name), space.Line(kind, name), func(t *testing.T, w *testkit.World) {
		if kind == keyspace.Pool {
			for _, part := range []string{keyspace.ItemsPart, keyspace.FreePart, keyspace.BindingsPart} {
				w.Hashes = append(w.Hashes, space.Key(kind, name, part))
			}
		}
		run := scriptkit.NewRunner(w.Redis, scriptkit.Options{})
		test(t, &world{World: w, space: space, kind: kind, reader: reader.New(run, space, false)})
	})
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
	return w.write("acquire", append([]string{r.Node, claim, "1", line.Lane(r.Priority), state.FixedTerms(&r)}, own...)...)
}

// semaphore asks for a permit of so many.
func (w *world) semaphore(claim string, capacity int, change ...func(*state.Record)) string {
	w.T.Helper()
	return w.ask(claim, []string{strconv.Itoa(capacity), "stored"}, change...)
}

func lasts(wait, lease time.Duration) func(*state.Record) {
	return func(r *state.Record) { r.Wait, r.Lease = wait, lease }
}

func weighs(n int) func(*state.Record) { return func(r *state.Record) { r.Weight = n } }

// release gives a hold or a wait back.
func (w *world) release(claim string) {
	w.T.Helper()
	own := map[keyspace.Kind][]string{keyspace.Pool: {"0", "", "0", "0"}}[w.kind]
	w.write("release", append([]string{"node-" + claim, claim, "0"}, own...)...)
}

// row is the name as it is read now.
func (w *world) row() reader.Name {
	w.T.Helper()
	n, err := w.reader.Name(context.Background(), w.kind, name)
	require.NoError(w.T, err)
	return n
}

// compare compares the reader with the model; of pools internal/model/pool does.
func (w *world) compare() {
	w.T.Helper()
	if w.kind != keyspace.Pool {
		model.Reads(w.T, w.Redis, w.space, w.kind, name)
	}
}

// each lets time pass, and compares in each of so many milliseconds.
func (w *world) each(n int) {
	w.T.Helper()
	for range n {
		w.Advance(ms)
		w.compare()
	}
}

func id(prefix string, n int) string { return fmt.Sprintf("%s.%d", prefix, n) }
