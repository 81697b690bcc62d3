package console

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

const (
	// walkFor is for how long a page of names is answered from memory: one reader, however many look.
	walkFor = 2 * time.Second
	// walksMost is how many such pages there are at once.
	walksMost = 20
)

// walks are pages of names in use.
type walks struct {
	console *Console

	mu    sync.Mutex
	pages map[string]*walk // guarded by mu
}

// walk is one page, which is read once for all who ask for it meanwhile.
type walk struct {
	ended chan struct{} // closed when what follows is there
	found inspect.Page[berth.Name]
	err   error
	at    time.Time // when it was read, by this process's clock
}

// read reads a page, or has it from memory.
func (w *walks) read(ctx context.Context, f inspect.NameFilter, from string) (*walk, error) {
	p, err := w.begun(f, from)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.ended:
		return p, p.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// begun is a page that is read, or was a moment ago.
func (w *walks) begun(f inspect.NameFilter, from string) (*walk, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, p := range w.pages {
		select {
		case <-p.ended:
			if time.Since(p.at) >= walkFor {
				delete(w.pages, key)
			}
		default:
		}
	}
	key := fmt.Sprintf("%q %q %t %q", f.Kinds, f.Prefix, f.Idle, from)
	if p := w.pages[key]; p != nil {
		return p, nil
	}
	if len(w.pages) >= walksMost {
		return nil, errBusy
	}
	if err := w.console.enter(); err != nil {
		return nil, err
	}
	p := &walk{ended: make(chan struct{})}
	w.pages[key] = p
	go func() {
		defer w.console.running.Done()
		w.walk(p, f, from)
	}()
	return p, nil
}

// walk reads a page.
func (w *walks) walk(p *walk, f inspect.NameFilter, from string) {
	defer close(p.ended)
	ctx, cancel := context.WithTimeout(w.console.ctx, firstWithin)
	defer cancel()
	p.err = guard.Run("the reading of names", w.console.tell, func() (err error) {
		p.found, err = w.console.watch.Names(ctx, f, from)
		return err
	})
	p.at = time.Now()
	switch {
	case p.err == nil:
	case w.console.ctx.Err() != nil:
		p.err = errClosed
	case ctx.Err() != nil:
		p.err = w.console.late()
	}
}

// nameList is a page of names in use.
type nameList struct {
	Names    []nameRow
	Prefix   string
	Kind     keyspace.Kind
	Idle     bool
	Next     string // cursor
	From     string // likewise, of this page
	Partial  bool
	Problems []string
}

// IdleValue is Idle as an address has it.
func (l nameList) IdleValue() string {
	if l.Idle {
		return "1"
	}
	return ""
}

// names answers with a page of names in use, which is not live.
func (c *Console) names(w http.ResponseWriter, r *http.Request, a Access) {
	q := r.URL.Query()
	l := nameList{Prefix: q.Get("prefix"), Kind: keyspace.Kind(q.Get("kind")), Idle: q.Get("idle") != "", From: q.Get("cursor")}
	f := inspect.NameFilter{Prefix: l.Prefix, Idle: l.Idle}
	if l.Kind != "" {
		f.Kinds = []keyspace.Kind{l.Kind}
	}
	p, err := c.walks.read(r.Context(), f, l.From)
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	for _, n := range p.found.Items {
		l.Names = append(l.Names, rowOf(n))
	}
	l.Next, l.Partial, l.Problems = p.found.Next, p.found.Partial, problemsOf(p.found.Problems)
	page := c.frame(a, "names", "Names in use")
	page.View, page.Now, page.Read, page.Query = l, p.found.At.Add(time.Since(p.at)), p.found.At, q
	page.Beat = beat{Now: page.Now.UnixMilli(), Read: page.Read.UnixMilli()}
	c.render(w, http.StatusOK, "names", page)
}
