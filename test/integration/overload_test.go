package integration

import (
	"context"
	"flag"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// The heartbeats of as many claims as wait here are as many as those of 50 000 with the default lease. With -race
// no process can have more than 8 000 goroutines. The long form is
// -overload.waits 50000 -overload.few 1000 -overload.lease 10s -overload.time 45s
// -overload.apart -overload.share 3, on a machine with nothing else to do than that and four busy loops.
var (
	overloadWaits = flag.Int("overload.waits", 5_000, "how many wait at once for 50 permits of a weak server")
	overloadFew   = flag.Int("overload.few", 100, "how many wait on the server that is compared with")
	overloadLease = flag.Duration("overload.lease", time.Second, "the wait lease")
	overloadTime  = flag.Duration("overload.time", 10*time.Second, "for how long grants are counted")
	overloadShare = flag.Int64("overload.share", 10, "what share of the few's grants the many must get: one in so many")
	overloadApart = flag.Bool("overload.apart", false, "do not measure both at the same time")
)

// The server runs for 10 of each 40 ms, which is too little for the heartbeats of all.
func TestManyWaitsOnAWeakServerAreServedAndLoseNoHold(t *testing.T) {
	w := newWorld(t, harness.Start(t)).turn()
	few, many := w.overloaded(*overloadFew), newWorld(t, harness.Start(t)).overloaded(*overloadWaits)
	w.Relies(*overloadLease)
	var both sync.WaitGroup
	both.Go(few.run)
	if *overloadApart {
		both.Wait()
	}
	both.Go(many.run)
	both.Wait()
	for _, o := range []*overload{few, many} {
		t.Logf("%d waits: %d grants in %v, %d failed", o.waits, o.grants.Load(), *overloadTime, o.failed.Load())
	}
	require.GreaterOrEqual(t, *overloadShare*many.grants.Load(), few.grants.Load())
	for _, o := range []*overload{few, many} {
		for _, p := range o.kept {
			require.NoError(t, p.Err(), "a hold is lost")
		}
	}
}

// overload is claims that wait for permits of a weak server, and holds of the same client.
type overload struct {
	*world
	waits  int
	sem    *semaphore.Semaphore
	kept   []*semaphore.Permit
	grants atomic.Int64
	failed atomic.Int64
}

func (w *world) overloaded(waits int) *overload {
	w.Helper()
	client := w.node(node.Config{Lease: *overloadLease, CallTimeout: 3 * time.Second})
	o := &overload{world: w, waits: waits, sem: w.sem(client, "gpu", 50)}
	keeps := w.sem(client, "kept", 50)
	for len(o.kept) < 50 {
		p := w.take(keeps, &semaphore.AcquireOptions{Lease: safe})
		if p.Renew(w.Within(patience)) == nil { // before that it has the wait lease, which a pause of the machine may end
			o.kept = append(o.kept, p)
		}
	}
	return o
}

func (o *overload) run() {
	defer o.weaken()()
	ctx, cancel := context.WithTimeout(context.Background(), *overloadTime)
	defer cancel()
	var all sync.WaitGroup
	for range o.waits {
		all.Go(func() {
			for ctx.Err() == nil {
				o.turn(ctx)
			}
		})
	}
	all.Wait()
}

// turn is one claim, from its ask to its release.
func (o *overload) turn(ctx context.Context) {
	p, err := o.sem.Acquire(ctx, nil)
	if err != nil {
		if ctx.Err() == nil {
			o.failed.Add(1) // as on a machine that stands still for the wait lease
		}
		return
	}
	o.grants.Add(1)
	<-time.After(10 * time.Millisecond) // of work
	_ = p.Release(context.WithoutCancel(ctx))
}

// weaken stops the server for 30 of each 40 ms, until the function that it returns is called.
func (o *overload) weaken() (end func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			o.server.Stop(o.T)
			<-time.After(30 * time.Millisecond)
			o.server.Cont(o.T)
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() { close(done); <-ended }
}
