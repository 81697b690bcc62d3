package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/berth-go/berth/internal/origin"
)

const (
	// beatEvery is how often a page hears that its stream is there, when nothing is read.
	beatEvery = 15 * time.Second
	// writeWithin bounds each write: who reads slower is dropped.
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

// beat is what a page hears with each reading.
type beat struct {
	Now   int64   `json:"now"`             // by the server's clock, ms
	Read  int64   `json:"read"`            // when it was read, likewise; 0: it was not
	Reads []int64 `json:"reads,omitempty"` // likewise, of each row, where they differ
	Ago   int64   `json:"ago"`             // how long ago that was, ms
	Old   int64   `json:"old,omitempty"`   // after how long it is old, likewise; 0: never
	Error string  `json:"error,omitempty"`
}

// rows is a view whose rows were read at moments of their own.
type rows interface{ readAt() []time.Time }

func (s *shown) beat(p *page) beat {
	r := &s.reading
	b := beat{Now: r.now().UnixMilli(), Error: problem(r.err)}
	if r.view != nil {
		b.Read, b.Ago = r.clock.UnixMilli(), time.Since(r.at).Milliseconds()
		if p.every > 0 {
			b.Old = max(oldAfter, oldReadings*p.every).Milliseconds()
		}
	}
	if of, ok := r.view.(rows); ok {
		differ := false
		for _, at := range of.readAt() {
			b.Reads = append(b.Reads, at.UnixMilli())
			differ = differ || at.UnixMilli() != b.Read
		}
		if !differ {
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

// begin counts a stream, if one more may be.
func (c *Console) begin(who string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ctx.Err() != nil:
		return errClosed
	case c.streams >= c.cfg.MaxStreams:
		return errStreams
	case c.shares[who] >= max(1, c.cfg.MaxStreams/4):
		return errShare
	}
	c.streams++
	c.shares[who]++
	c.running.Add(1)
	return nil
}

func (c *Console) over(who string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams--
	if c.shares[who]--; c.shares[who] == 0 {
		delete(c.shares, who)
	}
	c.running.Done()
}

// events is the stream of a page.
func (c *Console) events(w http.ResponseWriter, r *http.Request, a Access) {
	if origin.Foreign(r) { // of no use to who visits it
		c.refuse(w, r, refusal("another site has asked for this"))
		return
	}
	t, err := c.topicOf(r.URL.Query().Get("page"), r, a)
	if err == nil && len(t.page.regions) == 0 {
		err = errNoPage
	}
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	who := looker(r, a)
	if err := c.begin(who); err != nil {
		c.refuse(w, r, err)
		return
	}
	defer c.over(who)
	b, err := c.boards.look(t)
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	defer b.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return
	}
	c.follow(w, r, b)
}

// follow sends what is new until the page, the stream or the console ends.
func (c *Console) follow(w http.ResponseWriter, r *http.Request, b *board) {
	out := http.NewResponseController(w)
	if err := errors.Join(out.SetReadDeadline(time.Time{}), out.SetWriteDeadline(time.Now().Add(writeWithin))); err != nil {
		c.refuse(w, r, errors.New("this server's connections have no deadlines: nothing is live"))
		return
	}
	defer func() { _ = out.SetWriteDeadline(time.Time{}) }()
	beats := time.NewTicker(beatEvery)
	defer beats.Stop()
	end := time.NewTimer(streamFor)
	defer end.Stop()
	if !sent(w, out, []byte("retry: 1000\n\n")) { // ms, after which a browser connects again
		return
	}
	for seq := 0; ; {
		s, news := b.last()
		if !sent(w, out, s.since(seq, b.topic.page)) {
			return
		}
		seq = s.seq
		select {
		case <-news:
		case <-beats.C:
		case <-end.C:
			return
		case <-r.Context().Done():
			return
		case <-c.ctx.Done():
			return
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

// sent writes events, and says whether they have gone.
func sent(w http.ResponseWriter, out *http.ResponseController, events []byte) bool {
	if out.SetWriteDeadline(time.Now().Add(writeWithin)) != nil {
		return false
	}
	if _, err := w.Write(events); err != nil {
		return false
	}
	return out.Flush() == nil
}
