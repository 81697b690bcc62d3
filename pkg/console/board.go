package console

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"html/template"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/berth-go/berth/pkg/inspect"
)

// source is what a page shows, as it was read last.
type source interface {
	// last is the last reading, without its view if its number is the one that is known, and what is closed when there is
	// another one.
	last(known int) (reading, <-chan struct{})
	// `Anew` asks for a reading that begins after the given number of readings have begun.
	Anew(begun int)
	// Never is why nothing will ever be read, nil if something may be.
	Never() error
	Close()
}

// reading is what a source has.
type reading struct {
	view  any       // for the templates; nil: nothing was read yet
	clock time.Time // when it was read, by the server's clock
	at    time.Time // likewise, by this process's
	err   error     // why the last reading has failed
	seq   int       // its number, 0: none has ended yet
	turn  int       // how many had begun with it
}

// now is the server's clock now, as far as the last reading tells it.
func (r *reading) now() time.Time {
	if r.at.IsZero() {
		return time.Now()
	}
	return r.clock.Add(time.Since(r.at))
}

// topic is one page with what its address asks for.
type topic struct {
	page  *page
	query url.Values // what counts of the query
	act   bool       // for somebody who may act
}

func (t *topic) key() string { return fmt.Sprintf("%s?%s %t", t.page.name, t.query.Encode(), t.act) }

// boards are the pages that are looked at.
type boards struct {
	console *Console
	seed    maphash.Seed // of what is compared

	mu   sync.Mutex
	open map[string]*board // guarded by mu
}

// board renders one topic for all who look at it. A board has no goroutine: the first viewer renders a new
// reading.
type board struct {
	all    *boards
	key    string
	topic  topic
	source source
	looks  int // guarded by the boards' mu

	mu    sync.Mutex
	shown shown // guarded by mu
}

// shown is what a board shows.
type shown struct {
	reading reading
	seq     int // 0: nothing yet
	pieces  map[string]piece
	cycles  int // how many are known when it is sent
}

// piece is a part of a page.
type piece struct {
	html  template.HTML
	bones uint64 // what of it counts as a change
	since int    // with which seq it came
}

// look returns the board of a topic. Close it. Its error is that of a topic that cannot be looked at, now or ever: there
// is no board of it.
func (b *boards) look(t topic) (*board, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.console.ctx.Err() != nil {
		return nil, errClosed
	}
	key := t.key()
	if there := b.open[key]; there != nil {
		there.looks++
		return there, nil
	}
	from, err := t.page.open(b.console, t.query)
	if err != nil {
		return nil, err
	}
	if err := from.Never(); err != nil {
		from.Close()
		return nil, err
	}
	made := &board{all: b, key: key, topic: t, source: from, looks: 1}
	b.open[key] = made
	return made, nil
}

// Close ends one look.
func (b *board) Close() {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	if b.looks--; b.looks == 0 {
		delete(b.all.open, b.key)
		b.source.Close()
	}
}

// last returns the shown page, rendered again if there is a newer reading, and a channel that is closed when there is
// another one. A reading that has failed renders nothing: the page keeps what it has.
func (b *board) last() (shown, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.shown
	r, news := b.source.last(before.reading.seq)
	if r.seq == before.reading.seq {
		return before, news
	}
	b.shown = shown{reading: r, seq: before.seq + 1, pieces: before.pieces}
	if r.view == nil || before.seq > 0 && r.at.Equal(before.reading.at) {
		return b.shown, news
	}
	b.shown.pieces = map[string]piece{}
	for _, name := range b.topic.page.regions {
		html := b.all.console.region(b.topic, name, &r)
		p := piece{html, bones(b.all.seed, string(html)), b.shown.seq}
		if was := before.pieces[name]; was.bones == p.bones && was.since > 0 {
			p.since = was.since
		}
		b.shown.pieces[name] = p
	}
	return b.shown, news
}

// bones is a hash of what counts as a change: without how long ago something was, which a script moves on, and without
// when it was read. All <time> of a page are those of stamped: strangers' text has no "<".
func bones(seed maphash.Seed, html string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for {
		before, from, found := strings.Cut(html, "<time ")
		_, _ = h.WriteString(before) // it never fails
		if !found {
			return h.Sum64()
		}
		tag, rest, _ := strings.Cut(from, ">")
		if !strings.Contains(tag, " data-read=") {
			_, _ = h.WriteString(tag)
		}
		_, html, _ = strings.Cut(rest, "</time>")
	}
}

// first waits until something was read, by a reading that began after as many as had begun; 0 is any.
func (b *board) first(ctx context.Context, begun int) (shown, error) {
	for {
		s, news := b.last()
		if s.seq > 0 && (begun == 0 || s.reading.turn > begun) {
			return s, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return s, fmt.Errorf("nothing was read: %w", context.Cause(ctx))
		case <-b.all.console.ctx.Done():
			return s, errClosed
		}
	}
}

// region renders one region of a page.
func (c *Console) region(t topic, name string, r *reading) template.HTML {
	var out bytes.Buffer
	err := c.pages.ExecuteTemplate(&out, t.page.name+"."+name, scene{Act: t.act, Now: r.clock, View: r.view, Query: t.query})
	if err != nil {
		return template.HTML("<p>" + template.HTMLEscapeString("This part cannot be shown: "+err.Error()) + "</p>")
	}
	return template.HTML(out.String())
}

// scene is what the templates of regions get.
type scene struct {
	Act   bool
	Now   time.Time // by the server's clock
	View  any       // nil: nothing was read yet
	Query url.Values
}

// ended is a cycle for somebody who looks.
type ended struct {
	scene
	Cycle inspect.Cycle
}

// Ended is a cycle, with what ends it.
func (s scene) Ended(c inspect.Cycle) ended { return ended{s, c} }
