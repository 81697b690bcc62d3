package console

import (
	"context"
	"errors"
	"html/template"
	"maps"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/origin"
	"github.com/berth-go/berth/internal/watch"
)

// firstWithin is how long a page waits for its first reading.
const firstWithin = 5 * time.Second

// policy is what a page may do: nothing but its own files.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// routes are the addresses.
func (c *Console) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /static/{file}", c.static)
	mux.HandleFunc("GET /healthz", c.healthz)
	mux.HandleFunc("GET /events", c.asked(c.events))
	for _, p := range pages {
		answer := func(w http.ResponseWriter, r *http.Request, a Access) error { return c.live(w, r, a, p) }
		address := "GET /" + p.name
		switch p {
		case overviewPage:
			address = "GET /{$}"
		case searchPage:
			answer = c.search
		}
		mux.HandleFunc(address, c.asked(answer))
	}
	mux.HandleFunc("GET /act", c.asked(c.ask))
	mux.HandleFunc("POST /act", c.asked(c.do))
	mux.HandleFunc("/", c.asked(func(http.ResponseWriter, *http.Request, Access) error { return errNoPage }))
	return mux
}

// ServeHTTP answers a request whose path is without the prefix under which the Console is mounted.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer a form would have no Origin
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
	why := origin.Refusal(r, c.cfg.Hosts)
	switch {
	case why != "":
		http.Error(w, why, http.StatusForbidden)
		return
	case r.URL.Path == "":
		// Its links are relative to a folder. The address is relative, too: the prefix is not known here.
		whole, _, _ := strings.Cut(r.RequestURI, "?")
		h.Set("Location", "./"+path.Base(whole)+"/")
		w.WriteHeader(http.StatusPermanentRedirect)
		return
	case !strings.HasPrefix(r.URL.Path, "/"):
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = "/"+r.URL.Path, ""
	}
	if clean := path.Clean(r.URL.Path); clean != r.URL.Path && clean+"/" != r.URL.Path {
		c.refuse(w, r, errNoPage) // the mux would lead to the clean one, in the folder of all pages of this host
		return
	}
	if c.ctx.Err() != nil {
		http.Error(w, "The console is closed.", http.StatusServiceUnavailable)
		return
	}
	c.mux.ServeHTTP(w, r)
}

// asked gives a handler who asks, if that one may look. An error of the handler is why it refuses.
func (c *Console) asked(handle func(http.ResponseWriter, *http.Request, Access) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a := Access{Look: true, Act: true}
		if c.cfg.Access != nil {
			a = c.cfg.Access(r)
		}
		a.Act = a.Act && a.Look && c.cfg.AllowActions
		err := errNoLook
		if a.Look {
			err = handle(w, r, a)
		}
		if err != nil {
			c.refuse(w, r, err)
		}
	}
}

// live answers with a page that shows how things stand.
func (c *Console) live(w http.ResponseWriter, r *http.Request, a Access, p *page) error {
	t, err := c.topicOf(p.name, r, a)
	if err != nil {
		return err
	}
	b, err := c.boards.look(t)
	if err != nil {
		return err
	}
	defer b.Close()
	ctx, cancel := context.WithTimeout(r.Context(), firstWithin)
	defer cancel()
	var done *deed
	begun := 0
	if a.Act { // only an action from this page causes another reading
		done = c.deeds.about(r.URL.Query().Get("done"), p.name, t.query)
	}
	if done != nil && !done.Running {
		begun = done.begun
		b.source.Anew(begun)
	}
	s, err := b.first(ctx, begun)
	switch {
	case err != nil && ctx.Err() != nil && s.pieces != nil: // of before the action
		s.reading.err, err = c.late(), nil
	case err != nil && ctx.Err() != nil:
		err = c.late()
	case err == nil && s.pieces == nil:
		err = s.reading.err
	}
	if err != nil {
		return err
	}
	f := c.frame(a, p.name, p.title(t.query))
	s.cycles = c.cycles()
	f.Query, f.View, f.Now, f.Beat = t.query, s.reading.view, s.reading.now(), s.beat(p)
	f.Read = s.reading.clock
	f.Done = done
	f.Live = map[string]template.HTML{}
	for name, piece := range s.pieces {
		f.Live[name] = piece.html
	}
	if len(p.regions) > 0 {
		of := maps.Clone(t.query)
		of.Set("page", p.name)
		f.Events = "events?" + of.Encode()
	}
	c.render(w, http.StatusOK, p.name, f)
	return nil
}

// The refusals.
var (
	errNoPage = errors.New("there is no such page")
	errNoLook = errors.New("you may not look at this page")
)

// codeOf is the code of an error.
func codeOf(err error) int {
	switch {
	case errors.Is(err, errNoPage):
		return http.StatusNotFound
	case errors.Is(err, errNoLook), errors.Is(err, errRefused):
		return http.StatusForbidden
	case watch.Silent(err):
		return http.StatusServiceUnavailable
	case errors.Is(err, berth.ErrInvalidConfig):
		return http.StatusBadRequest
	case errors.Is(err, berth.ErrNotHeld):
		return http.StatusGone
	}
	for _, later := range []error{errStreams, errShare, errClosed, errSilent, errBusy, watch.ErrMany, watch.ErrClosed} {
		if errors.Is(err, later) {
			return http.StatusServiceUnavailable
		}
	}
	return http.StatusBadGateway
}

// errRefused is that of an action that is refused.
var errRefused = errors.New("refused")

// refuse answers with a page that says why.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, err error) {
	code := codeOf(err)
	if r.Context().Err() != nil {
		return // nobody waits for it
	}
	f := c.frame(Access{}, "", http.StatusText(code))
	f.Error = problem(err)
	f.Root = strings.Repeat("../", max(0, strings.Count(r.URL.EscapedPath(), "/")-1))
	if f.Again = code == http.StatusServiceUnavailable && r.Method == http.MethodGet; f.Again {
		w.Header().Set("Refresh", "5") // seconds
	}
	c.render(w, code, "refused", f)
}
