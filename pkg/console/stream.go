package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/berth-go/berth/internal/origin"
)

const (
	// beatEvery is how often a page gets a sign of life of its stream if nothing is read.
	beatEvery = 15 * time.Second
	// writeWithin limits each write: a slower reader is dropped.
	writeWithin = 10 * time.Second
	// streamFor is how long a stream lasts. The browser then asks again, and so does the console whether it may.
	streamFor = 15 * time.Minute
	// A page that shows a reading of longer ago than oldAfter, and than oldReadings readings take, is not live.
	oldAfter, oldReadings = 5 * time.Second, 3
)

var (
	errClosed  = errors.New("the console is closed")
	errStreams = errors.New("as many pages are live as may be: close some, or reload this one to see the newest")
	errShare   = errors.New("as many pages of yours are live as may be: close some, or reload this one to see the newest")
)

// beat is the data that a page gets with each reading.
type beat struct {
	Now   int64   `json:"now"`             // by the server's clock, ms
	Read  int64   `json:"read"`            // when it was read, likewise; 0: it was not
	Reads []int64 `json:"reads,omitempty"` // likewise, of each row that says it, where they differ
	Ago   int64   `json:"ago"`             // how long ago that was, ms
	Old   int64   `json:"old,omitempty"`   // after how long it is old, likewise; 0: never
	// Cycles is how many are known, of all names.
	Cycles int    `json:"cycles,omitempty"`
	Error  string `json:"error,omitempty"`
}

func (s *shown) beat(p *page) beat {
	r := &s.reading
	b := beat{Now: r.now().UnixMilli(), Cycles: s.cycles, Error: problem(r.err)}
	if r.view != nil {
		b.Read, b.Ago = r.clock.UnixMilli(), time.Since(r.at).Milliseconds()
		if p.every > 0 {
			b.Old = max(oldAfter, oldReadings*p.every).Milliseconds()
		}
	}
	if o, ok := r.view.(overview); ok { // its rows were read at moments of their own
		for i := range o.names {
			if at := o.names[i].At; !at.IsZero() {
				b.Reads = append(b.Reads, at.UnixMilli())
			}
		}
		if !slices.ContainsFunc(b.Reads, func(at int64) bool { return at != b.Read }) {
			b.Reads = nil
		}
	}
	return b
}

// looker is for whom a stream counts: the user or, where none is known, the address.
func looker(r *http.Request, a Access) string {
	if a.User != "" {
		return "user " + a.User
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return "address " + host
}

// begin counts a stream, if one more may be. over is for its end.
func (c *Console) begin(who string) (over func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ctx.Err() != nil:
		return nil, errClosed
	case c.streams >= c.cfg.MaxStreams:
		return nil, errStreams
	case c.shares[who] >= max(1, c.cfg.MaxStreams/4):
		return nil, errShare
	}
	c.streams++
	c.shares[who]++
	c.running.Add(1)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.streams--
		if c.shares[who]--; c.shares[who] == 0 {
			delete(c.shares, who)
		}
		c.running.Done()
	}, nil
}

// events is the stream of a page.
func (c *Console) events(w http.ResponseWriter, r *http.Request, a Access) error {
	if origin.Foreign(r) { // of no use to who visits it
		return refusal("another site has asked for this")
	}
	t, err := c.topicOf(r.URL.Query().Get("page"), r, a)
	if err == nil && len(t.page.regions) == 0 {
		err = errNoPage
	}
	if err != nil {
		return err
	}
	over, err := c.begin(looker(r, a))
	if err != nil {
		return err
	}
	defer over()
	b, err := c.boards.look(t)
	if err != nil {
		return err
	}
	defer b.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return nil
	}
	return c.follow(w, r, b)
}

// follow sends what is new until the page, the stream or the console ends.
func (c *Console) follow(w http.ResponseWriter, r *http.Request, b *board) error {
	out := http.NewResponseController(w)
	if err := errors.Join(out.SetReadDeadline(time.Time{}), out.SetWriteDeadline(time.Now().Add(writeWithin))); err != nil {
		return errors.New("this server's connections have no deadlines: nothing is live")
	}
	defer func() { _ = out.SetWriteDeadline(time.Time{}) }()
	beats, end := time.Tick(beatEvery), time.After(streamFor)
	if !sent(w, out, []byte("retry: 1000\n\n")) { // ms, after which a browser connects again
		return nil
	}
	for seq := 0; ; {
		s, news := b.last()
		s.cycles = c.cycles()
		if !sent(w, out, s.since(seq, b.topic.page)) {
			return nil
		}
		seq = s.seq
		select {
		case <-news:
		case <-beats:
		case <-end:
			return nil
		case <-r.Context().Done():
			return nil
		case <-c.ctx.Done():
			return nil
		}
	}
}

// since are the events that a page needs that has seen up to seq.
func (s *shown) since(seq int, of *page) []byte {
	var out bytes.Buffer
	if s.seq == 0 {
		out.WriteString(": nothing was read yet\n\n")
		return out.Bytes()
	}
	for _, name := range of.regions {
		if p, there := s.pieces[name]; there && p.since > seq {
			event(&out, "region", struct {
				Name string `json:"name"`
				HTML string `json:"html"`
			}{name, string(p.html)})
		}
	}
	event(&out, "beat", s.beat(of))
	return out.Bytes()
}

func event(out *bytes.Buffer, name string, data any) {
	out.WriteString("event: " + name + "\ndata: ")
	e := json.NewEncoder(out) // ends with a newline, and has none inside
	e.SetEscapeHTML(false)
	_ = e.Encode(data)
	out.WriteString("\n")
}

// sent writes events, and reports whether the write succeeded.
func sent(w http.ResponseWriter, out *http.ResponseController, events []byte) bool {
	if out.SetWriteDeadline(time.Now().Add(writeWithin)) != nil {
		return false
	}
	if _, err := w.Write(events); err != nil {
		return false
	}
	return out.Flush() == nil
}
