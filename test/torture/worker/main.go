// Worker is a child process of a torture run: it uses all three primitives, on nodes that carry all of them, as a
// busy program would, and writes down what it did and what it was told. Its order
// is a job.Job in its environment.
package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/test/torture/history"
	"github.com/berth-go/berth/test/torture/job"
)

// leakLooks is how often goroutines are looked for that have not ended after the nodes were
// closed: for 12 s, if this process runs all the time. A close that was cut short by a fault
// leaves some that go on for a while.
const leakLooks = 18

// nodes is how many a worker has at a time, each with something of all primitives.
const nodes = 3

func main() {
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
	}
	os.Exit(code)
}

// worker is this process.
type worker struct {
	job      job.Job
	log      *log
	redis    rueidis.Client
	draining chan struct{} // closed by the order to drain
	long     atomic.Bool   // set between the orders Long and Short
	part     atomic.Int64  // holds that began before it are to end: CLOCK_MONOTONIC ns

	opened  atomic.Int64  // how many crews there were
	endless atomic.Bool   // set between the orders Endless and Short
	asked   chan struct{} // closed by the first order Endless
}

func run() (int, error) {
	j, err := job.FromEnv()
	if err != nil {
		return 2, err
	}
	out, err := history.Create(j.History, j.Process)
	if err != nil {
		return 2, err
	}
	w := &worker{job: j, log: newLog(out), draining: make(chan struct{}), asked: make(chan struct{})}
	go w.listen()
	if !w.connect() {
		return 0, out.Close()
	}
	worked, closed := w.work()
	if _, err := fmt.Fprintln(os.Stdout, job.Ready); err != nil {
		return 2, err
	}
	<-w.draining
	stuck := w.await(worked, time.Duration(j.DrainLimit)*time.Millisecond) ||
		w.await(closed, 3*w.closeLimit())
	if !stuck {
		w.lookForLeaks(leakLooks) // before its end takes along what had to end by itself
		w.redis.Close()
		w.lookForConnections()
	}
	if err := out.Close(); stuck || err != nil {
		return 1, err
	}
	return 0, nil
}

// listen takes orders. The end of its input ends the process: nobody reads its
// history to the end then.
func (w *worker) listen() {
	orders := bufio.NewScanner(os.Stdin)
	var once, asked sync.Once
	for orders.Scan() {
		order, age, _ := strings.Cut(orders.Text(), " ")
		switch order {
		case job.Part:
			old, err := strconv.ParseInt(age, 10, 64)
			must(err)
			w.part.Store(history.Monotonic() - old*int64(time.Millisecond))
		case job.Drain:
			once.Do(func() { close(w.draining) })
		case job.Long:
			w.long.Store(true)
		case job.Endless:
			w.endless.Store(true)
			asked.Do(func() { close(w.asked) })
		case job.Short:
			w.long.Store(false)
			w.endless.Store(false)
		}
	}
	os.Exit(3)
}

// connect makes the rueidis client. It tries until the server answers, and gives
// up on the order to drain.
func (w *worker) connect() bool {
	for {
		redis, err := rueidis.NewClient(w.options())
		if err == nil {
			w.redis = redis
			return true
		}
		if !pause(50*time.Millisecond, w.draining) {
			return false
		}
	}
}

// work starts the crews. worked is closed when none of them has anything under
// way any more, closed when all their nodes are closed, too.
func (w *worker) work() (worked, closed chan struct{}) {
	worked, closed = make(chan struct{}), make(chan struct{})
	var working, open sync.WaitGroup
	for n := range nodes {
		hands := (w.job.Goroutines + n) / nodes // together all of them
		working.Add(1)
		open.Go(func() { w.crews(n, hands, working.Done) })
	}
	working.Add(1)
	open.Go(func() { w.withoutEnd(working.Done) })
	go func() {
		working.Wait()
		close(worked)
	}()
	go func() {
		open.Wait()
		close(closed)
	}()
	return worked, closed
}

// crews has one crew after the other work, until the drain. It calls idle when
// the last has nothing under way any more.
func (w *worker) crews(n, hands int, idle func()) {
	draw := &dice{rand.New(rand.NewPCG(uint64(w.job.Seed), uint64(1000+n)))}
	workers := make([]*hand, hands)
	for i := range workers {
		workers[i] = newHand(w, uint64(100*n+i))
	}
	for {
		c := w.open(strconv.Itoa(n), w.job.Swarms > 0 && draw.oneIn(w.job.Swarms))
		abrupt := !w.job.Calm && draw.oneIn(4)
		var busy sync.WaitGroup
		for _, h := range workers {
			busy.Go(func() { h.work(c) })
		}
		if w.job.Drains > 0 && draw.oneIn(w.job.Drains) {
			w.drain(c, draw)
		} else {
			pause(draw.between(w.job.Life/2, w.job.Life), w.draining)
		}
		drained := w.drains()
		close(c.over)
		if abrupt && !drained {
			// The node is closed in the midst of everything, as by a program
			// that was told to end.
			c.abrupt.Store(true)
			c.close()
			busy.Wait()
			c.list()
			continue
		}
		busy.Wait()
		last := w.drains()
		if last {
			idle()
		}
		c.close()
		c.list()
		if last {
			return
		}
	}
}

// drains says whether nothing new is to be begun.
func (w *worker) drains() bool {
	select {
	case <-w.draining:
		return true
	default:
		return false
	}
}

// await waits for done. If that takes longer than limit, it writes down what is
// stuck and returns true.
func (w *worker) await(done <-chan struct{}, limit time.Duration) (stuck bool) {
	select {
	case <-done:
		return false
	case <-time.After(limit):
		w.log.stuck(limit)
		return true
	}
}

// pause waits for d, and returns false at once if ended is closed first.
func pause(d time.Duration, ended <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ended:
		return false
	}
}

// lookForLeaks writes down what runs on though all nodes are closed, after so many looks
// that have found something: they count no time in which this process does not run.
// Goroutines that are none of Berth's are not looked at: the rueidis client is still
// open. It looks a few times, because one that has not begun to run has no name yet, and
// less and less often while there are some, because a look stops them all.
func (w *worker) lookForLeaks(most int) {
	const looks, often, seldom = 3, 20 * time.Millisecond, time.Second
	step, found := often, 0
	for clean := 0; clean < looks; <-time.After(step) {
		left := ours()
		if len(left) == 0 {
			clean++
			step = often
			continue
		}
		clean, step = 0, min(2*step, seldom)
		if found++; found == most {
			w.log.write(history.Event{Kind: history.Leak, Err: strings.Join(left, "\n\n")})
			return
		}
	}
}

// ours are the goroutines of the library that there are.
func ours() (found []string) {
	const most = 4 << 20
	text := make([]byte, most)
	text = text[:runtime.Stack(text, true)]
	for g := range strings.SplitSeq(string(text), "\n\n") {
		if strings.Contains(g, "berth-go/berth/pkg/") || strings.Contains(g, "berth-go/berth/internal/") {
			found = append(found, g)
		}
	}
	return found
}

// lookForConnections writes down connections that are open after the client was
// closed. That of a cluster closes some only when it has not needed them for 5 s.
func (w *worker) lookForConnections() {
	const looks = 350 // for 7 s, if this process runs all the time
	for found := 1; ; <-time.After(20 * time.Millisecond) {
		left := sockets()
		if len(left) == 0 {
			return
		}
		if found++; found > looks {
			w.log.write(history.Event{Kind: history.Leak, Err: fmt.Sprintf("connections: %v", left)})
			return
		}
	}
}

// sockets are the open sockets of this process, as Linux shows them; elsewhere none.
func sockets() []string {
	links, err := filepath.Glob("/proc/self/fd/*")
	must(err)
	var found []string
	for _, link := range links {
		// One that is gone by now is none.
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, "socket:") {
			found = append(found, to)
		}
	}
	return found
}
