package pool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	node string
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
	p.all = append(p.all, push{message, node})
}

// publish publishes a mark, and says how many hear it.
func (p *Pushes) publish(ctx context.Context) int64 {
	n, _ := p.redis.Do(ctx, p.redis.B().Publish().Channel(p.prefix+mark).Message("").Build()).AsInt64()
	return n
}

// take returns what has been published since the last call.
func (p *Pushes) take(t *rapid.T) []push {
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

// hear takes from a reply what it says about the next place that may become free.
func (d *driver) hear(args []string, r *scriptkit.Reply) {
	at := map[string]int{"queued": 9, "renewed": 1, "restored": 1, "swept": 1}[r.Status()]
	if node := args[0]; at > 0 {
		if d.told[node] = forever; r.Int(at) >= 0 {
			d.told[node] = d.now + r.Int(at)
		}
	}
}

// checkPushes: whoever was granted something in line is told, and whoever is first in
// line knows when something may next become free, or asks soon enough.
func (d *driver) checkPushes(t *rapid.T) {
	var handed []string
	for _, p := range d.Heard.take(t) {
		switch {
		case p.Name != d.Name:
			t.Fatalf("a push for another name: %+v", p)
		case p.Word == "granted":
			handed = append(handed, strings.Join(append([]string{p.Word, p.node}, p.Fields...), " "))
		case p.Word == "next":
			if p.Int(0) < 0 {
				t.Fatalf("a push about the past: %+v", p)
			}
			d.told[p.node] = min(cmp.Or(d.told[p.node], forever), d.now+p.Int(0))
		case p.Word != "released":
			t.Fatalf("a push with an unknown word: %+v", p)
		}
	}
	if !slices.Equal(handed, d.handed) {
		t.Fatalf("the pushes are %q, in the model %q", handed, d.handed)
	}
	line := slices.DeleteFunc(d.line(), func(c *claim) bool { return c.alive <= d.now })
	if len(line) == 0 {
		return
	}
	c := line[0]
	next, what := d.next()
	told := cmp.Or(d.told[c.node], forever)
	if told > d.now && next < told && next < c.alive-c.wait/2 {
		t.Fatalf("%s is first in line, and does not know that %s ends in %d ms; it was told %d ms", c.id, what, next-d.now, told-d.now)
	}
}

// next is when something next becomes free by itself, and what that is.
func (d *driver) next() (next int64, what string) {
	next = forever
	for _, c := range d.claims {
		if c.deadline > d.now && c.deadline < next && c.kind == "o" {
			next, what = c.deadline, "the lease of "+c.id
		}
	}
	for key, i := range d.items {
		if i.ends > d.now && i.ends < next {
			next, what = i.ends, fmt.Sprintf("the rest of %q", key)
		}
	}
	return next, what
}
