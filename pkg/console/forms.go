package console

import (
	"maps"
	"net/http"
	"slices"
	"sync"
)

// postsMost is how many sent forms are remembered.
const postsMost = 200

// forms has the forms that were given to browsers: each has a number, and is executed once.
type forms struct {
	mu    sync.Mutex
	last  int           // the newest; guarded by mu
	old   int           // forms up to this one are not taken any more; guarded by mu
	posts map[int]*post // those that were sent; guarded by mu
}

// post is what has come of a form. The first request with the form writes the post, and closes
// ended.
type post struct {
	ended chan struct{}
	form  deedForm
	leads string // where its outcome is seen, "" if it failed
	wrong string // why it failed
	code  int    // likewise
}

// next is the number of a new form.
func (f *forms) next() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	return f.last
}

// sent reports whether a form was sent before.
func (f *forms) sent(number int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.posts[number] != nil
}

// post returns the outcome of a form; first says that the caller must execute the form.
func (f *forms) post(number int) (p *post, first bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.posts[number]; p != nil {
		return p, false, nil
	}
	if number <= f.old {
		return nil, false, errOld
	}
	p = &post{ended: make(chan struct{})}
	f.posts[number] = p
	if len(f.posts) > postsMost {
		f.old = slices.Min(slices.Collect(maps.Keys(f.posts)))
		delete(f.posts, f.old)
	}
	return p, true, nil
}

// once executes a form, or waits for the outcome if another request has sent the same form first.
func (c *Console) once(w http.ResponseWriter, r *http.Request, a Access, f *deedForm) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.running.Done()
	p, first, err := c.forms.post(f.Number)
	if err != nil {
		return err
	}
	if first {
		p.form = *f
		c.done(r, a, f, p)
	}
	select {
	case <-p.ended:
	case <-r.Context().Done():
		return nil
	}
	if again := p.form; p.wrong != "" {
		again.Wrong = p.wrong
		c.form(w, r, a, p.code, &again)
		return nil
	}
	seeOther(w, p.leads)
	return nil
}
