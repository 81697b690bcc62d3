package pool

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/wake"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// push is a wake-up, and the node that it is for.
type push struct {
	wake.Message
	node, text string
}

// Pushes are the wake-ups that have been published in a namespace.
type Pushes struct {
	redis  rueidis.Client
	prefix string
	marks  chan struct{} // one for each mark that has come back

	mu  sync.Mutex
	all []push // guarded by mu
}

// mark is no node's name: what is published for it comes after all that was published
// before.
const mark = "mark"

// patience bounds the wait for a mark.
const patience = 30 * time.Second

// Listen hears all that is published in a namespace, until the test ends.
func Listen(t testing.TB, redis rueidis.Client, space keyspace.Space) *Pushes {
	t.Helper()
	p := &Pushes{redis: redis, prefix: space.Wake(""), marks: make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = redis.Receive(ctx, redis.B().Psubscribe().Pattern(p.prefix+"*").Build(), p.hear)
	}()
	t.Cleanup(func() { stop(); <-done })
	started := time.NewTimer(patience)
	defer started.Stop()
	for p.publish(ctx) == 0 {
		select {
		case <-started.C:
			require.FailNow(t, "nobody has subscribed")
		default:
		}
	}
	<-p.marks
	return p
}

func (p *Pushes) hear(m rueidis.PubSubMessage) {
	node := strings.TrimPrefix(m.Channel, p.prefix)
	if node == mark {
		p.marks <- struct{}{}
		return
	}
	message, err := wake.Parse(m.Message)
	if err != nil {
		message.Word = m.Message
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, push{message, node, m.Message})
}

// publish publishes a mark, and says how many hear it.
func (p *Pushes) publish(ctx context.Context) int64 {
	n, _ := p.redis.Do(ctx, p.redis.B().Publish().Channel(p.prefix+mark).Message("").Build()).AsInt64()
	return n
}

// Texts are the nodes and the texts of what has been published since the last call.
func (p *Pushes) Texts(t tb) (all []string) {
	t.Helper()
	for _, push := range p.take(t) {
		all = append(all, push.node+" "+push.text)
	}
	return all
}

// tb is a test, of rapid or not.
type tb interface {
	Helper()
	Fatal(args ...any)
}

// take returns what has been published since the last call.
func (p *Pushes) take(t tb) []push {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	p.publish(ctx)
	select {
	case <-p.marks:
	case <-ctx.Done():
		t.Fatal("the pushes do not come")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.all
	p.all = nil
	return all
}

// hear takes from a reply what it says about the next place that may become free, as the engine
// does: the last one counts, unless it is about some claims alone, or nothing to those who wait. A
// node that has let a moment pass has to ask for all of its claims first.
func (d *driver) hear(node string, args []string, r *scriptkit.Reply) {
	at := map[string]int{"queued": 9, "renewed": 1, "restored": 1, "swept": 1}[r.Status()]
	flags, next := int64(flagOwn), int64(-1)
	if words := strings.Fields(r.Str(min(1, r.Len()-1))); r.Status() == scriptkit.Plain && len(words[0]) == 13 {
		next, _ = strconv.ParseInt(words[2], 10, 64)
	} else if at > 0 {
		flags, next = r.Int(map[bool]int{true: 4, false: 2}[at == 9]), r.Int(at)
	}
	if next < 0 {
		return
	}
	next += d.now
	switch told := d.told[node]; {
	case flags&flagOwn != 0 && told > 0 && !d.covers(node, args):
		d.told[node] = min(told, next) // other claims of the node may wait for something sooner
	case flags&flagOwn != 0 || !d.apart(node):
		d.told[node] = next
	}
}

// covers says whether a call is about all claims of a node that wait.
func (d *driver) covers(node string, call []string) bool {
	return !slices.ContainsFunc(d.queue(), func(c *claim) bool { return c.node == node && !slices.Contains(call, c.id) })
}

// apart says whether all claims of a node that wait were told that they wait for one resource.
func (d *driver) apart(node string) bool {
	waits := false
	for _, c := range d.queue() {
		if c.node == node && c.told.lane == "" {
			return false
		}
		waits = waits || c.node == node
	}
	return waits
}

// checkPushes: whoever was granted something in line is told, or waits for what is absent, and
// whoever is first in line or in a lane knows when something may next become free, or asks soon enough.
func (d *driver) checkPushes(t *rapid.T) {
	handed := d.hears(t)
	if !slices.Equal(handed, d.handed) {
		t.Fatalf("the pushes are %q, in the model %q", handed, d.handed)
	}
	for what, must := range d.absent {
		if must {
			t.Fatalf("nobody was told %q", what)
		}
	}
	first := map[string]bool{}
	for _, c := range d.line() {
		if c.alive <= d.now {
			continue
		}
		if !first[c.lane] && (d.paused == 0 || c.lane == "") { // the replies tell those in lanes
			next, what := d.next(c.lane)
			d.checkKnows(t, c, next, what)
		}
		if c.until > d.now && d.paused == 0 {
			d.checkKnows(t, c, c.until, "its patience")
		}
		first[c.lane] = true
	}
}

// hears takes the pushes, and returns those about grants, and about holds that are wanted back.
func (d *driver) hears(t *rapid.T) (handed []string) {
	for _, p := range d.Heard.take(t) {
		said := strings.Join(append([]string{p.Word, p.node}, p.Fields...), " ")
		switch {
		case p.Name != d.Name:
			t.Fatalf("a push for another name: %+v", p)
		case p.Word == "granted" || p.Word == "wanted":
			handed = append(handed, said)
		case p.Word == "absent":
			if _, ok := d.absent[said]; !ok {
				t.Fatalf("a push about a wait that has not ended: %q", said)
			}
			delete(d.absent, said)
		case p.Word == "next":
			if p.Int(0) < 0 {
				t.Fatalf("a push about the past: %+v", p)
			}
			d.told[p.node] = min(cmp.Or(d.told[p.node], forever), d.now+p.Int(0))
		case p.Word != "released":
			t.Fatalf("a push with an unknown word: %+v", p)
		}
	}
	return handed
}

// checkKnows: the node of a claim knows of a moment that concerns the claim, or asks soon enough.
func (d *driver) checkKnows(t *rapid.T, c *claim, at int64, what string) {
	told := cmp.Or(d.told[c.node], forever)
	if told > d.now && at < told && at < c.alive-c.wait/2 {
		t.Fatalf("%s waits first for %q, and does not know that %s ends in %d ms; it was told %d ms", c.id, c.lane, what, at-d.now, told-d.now)
	}
}
