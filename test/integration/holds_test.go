package integration

import (
	"flag"
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

var holdsFor = flag.Duration("holds.for", 0,
	"how long TestHoldsOfManyNamesAreAllKept keeps 10 000 holds with a lease of 5 s, beside four busy loops; 0: fewer ones, for a few renewals")

func TestHoldsOfManyNamesAreAllKept(t *testing.T) {
	w := private(t).of(keyspace.Lock)
	// Of these no pause of the machine ends one, though a busy one takes long to begin and to end as many.
	many, lease, during, loops := 1000, 3*safe, time.Duration(0), 0
	if *holdsFor > 0 {
		w.turn()
		many, lease, during, loops = 10_000, 5*time.Second, *holdsFor, 4
	}
	for range loops {
		busy := exec.Command("sh", "-c", "while kill -0 $PPID; do :; done")
		require.NoError(t, busy.Start())
		w.Cleanup(func() { _ = busy.Process.Kill(); _ = busy.Wait() })
	}
	client := w.locker(node.Config{Lease: lease})
	locks := make([]*qlock.Lock, many)
	w.eachOf(many, func(i int) (err error) {
		locks[i], err = client.Lock(w.Within(patience), fmt.Sprint("name ", i), nil)
		return err
	})
	before, start := w.runs(), time.Now()
	<-time.After(during)
	require.Eventually(w, func() bool { return w.runs()-before >= many }, patience, safe/20, "each is renewed")
	renewals, took := w.runs()-before, time.Since(start)
	lost := 0
	for _, l := range locks {
		if l.Err() != nil {
			lost++
		}
	}
	w.Logf("%d renewals in %v; %d lost", renewals, took, lost)
	require.Zero(w, lost, "of %d", many)
	w.eachOf(many, func(i int) error { return locks[i].Release(w.Within(patience)) })
}

// eachOf does something n times, some at a time.
func (w *world) eachOf(n int, do func(i int) error) {
	w.Helper()
	var all sync.WaitGroup
	const workers = 32
	failures := make([]error, workers)
	for w := range workers {
		all.Go(func() {
			for i := w; i < n && failures[w] == nil; i += workers {
				failures[w] = do(i)
			}
		})
	}
	all.Wait()
	for _, err := range failures {
		require.NoError(w, err)
	}
}
