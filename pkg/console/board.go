package console

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"sync"
	"time"
)

// source is what a page shows, as it was read last.
type source interface {
	last() (reading, <-chan struct{})
	Close()
}

// reading is what a source has.
type reading struct {
	view  any       // for the templates; nil: nothing was read yet
	clock time.Time // when it was read, by the server's clock
	at    time.Time // likewise, by this process's
	err   error     // why the last reading has failed
	seq   int       // its number, 0: none has ended yet
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
	running sync.WaitGroup

	mu   sync.Mutex
	open map[string]*board // guarded by mu
}

// board renders one topic for all who look at it.
type board struct {
	all    *boards
	key    string
	topic  topic
	source source
	end    context.CancelFunc
	looks  int // guarded by the boards' mu

	mu    sync.Mutex
	shown shown         // guarded by mu
	news  chan struct{} // closed with the next one; guarded by mu
}

// shown is what a board shows.
type shown struct {
	reading reading
	seq     int // 0: nothing yet
	pieces  map[string]piece
}

// piece is a part of a page.
type piece struct {
	html  template.HTML
	bones string // what of it counts as a change
	since int    // with which seq it came
}

// look returns the board of a topic. Close it.
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
	ctx, end := context.WithCancel(b.console.ctx)
	made := &board{all: b, key: key, topic: t, source: from, end: end, looks: 1, news: make(chan struct{})}
	b.open[key] = made
	b.running.Go(func() { made.run(ctx) })
	return made, nil
}

// wait waits until nothing is rendered any more. The console's context has ended.
func (b *boards) wait() {
	b.mu.Lock()   // nothing begins behind it
	b.mu.Unlock() //nolint:staticcheck // empty on purpose
	b.running.Wait()
}

// Close ends one look.
func (b *board) Close() {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	if b.looks--; b.looks == 0 {
		delete(b.all.open, b.key)
		b.end()
	}
}

// run renders what is read until nobody looks.
func (b *board) run(ctx context.Context) {
	defer b.source.Close()
	for {
		last, news := b.source.last()
		if last.seq > 0 {
			b.show(last)
		}
		select {
		case <-news:
		case <-ctx.Done():
			return
		}
	}
}

// times are the parts of a page that change with the time alone: a script moves them on.
var times = regexp.MustCompile(`<time [^>]*data-read[^>]*>[^<]*</time>|(<time [^>]*>)[^<]*</time>`)

// show renders a reading, and wakes who looks.
func (b *board) show(r reading) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.shown
	next := shown{reading: r, seq: old.seq + 1, pieces: map[string]piece{}}
	for _, name := range b.topic.page.regions {
		html := b.all.console.region(b.topic, name, &r)
		p := piece{html: html, bones: times.ReplaceAllString(string(html), "$1"), since: next.seq}
		if was, ok := old.pieces[name]; ok && was.bones == p.bones {
			p.since = was.since
		}
		next.pieces[name] = p
	}
	b.shown = next
	close(b.news)
	b.news = make(chan struct{})
}

// last is what is shown, and what is closed when there is something newer.
func (b *board) last() (shown, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shown, b.news
}

// first waits until something was read.
func (b *board) first(ctx context.Context) (shown, error) {
	for {
		s, news := b.last()
		if s.seq > 0 {
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
