package link

import (
	"net"
	"strings"
	"sync"
	"time"
)

// conn is one connection: the client's end, the server's end, and what is on its
// way between them.
type conn struct {
	link *Link
	near net.Conn // the other end of the client's
	far  net.Conn // to the server
	up   *queue
	down *queue
	done chan struct{}
	once sync.Once

	mu      sync.Mutex
	pending []Fate // guarded by mu: of the commands without a reply yet
	listens bool   // guarded by mu: it has subscribed
}

// open carries everything between a new client's end, which it returns, and far.
func (l *Link) open(far net.Conn) net.Conn {
	client, near := net.Pipe()
	c := &conn{
		link: l, near: near, far: far, up: newQueue(), down: newQueue(), done: make(chan struct{}),
	}
	l.mu.Lock()
	l.conns[c] = true
	l.mu.Unlock()
	for _, carry := range []func(){
		c.readCommands, c.readReplies,
		func() { c.deliver(c.up, c.far) },
		func() { c.deliver(c.down, c.near) },
	} {
		go func() {
			defer c.close()
			carry()
		}()
	}
	return client
}

// close breaks the connection; what was on its way is lost.
func (c *conn) close() {
	c.once.Do(func() {
		close(c.done)
		_ = c.near.Close()
		_ = c.far.Close()
		c.link.mu.Lock()
		delete(c.link.conns, c)
		c.link.mu.Unlock()
	})
}

// readCommands takes what the client sends.
func (c *conn) readCommands() {
	r := newReader(c.near)
	for {
		words, raw, err := readCommand(r)
		if err != nil {
			return
		}
		raw, fate := c.link.command(words, raw)
		if fate.kind == loseRequest || fate.kind == late {
			return
		}
		if fate.kind == refuse {
			raw = command("EVAL", "return redis.error_reply(ARGV[1])", "0", fate.answer)
		}
		c.mu.Lock()
		c.pending = append(c.pending, fate)
		c.listens = c.listens || strings.HasSuffix(strings.ToUpper(words[0]), "SUBSCRIBE")
		c.mu.Unlock()
		c.up.push(raw, c.link.lag())
	}
}

// readReplies takes what the server sends.
func (c *conn) readReplies() {
	r := newReader(c.far)
	for {
		first, raw, err := readReply(r)
		if err != nil {
			return
		}
		c.mu.Lock()
		published := c.listens && (first == "message" || first == "pmessage")
		fate := Pass
		if !published && len(c.pending) > 0 {
			fate, c.pending = c.pending[0], c.pending[1:]
		}
		c.mu.Unlock()
		if published && c.link.isDeaf() {
			continue
		}
		if fate.kind == onceRun && !strings.HasPrefix(first, "NOSCRIPT ") {
			fate = fate.decide()
		}
		switch fate.kind {
		case loseReply:
			return
		case replace:
			raw = []byte(fate.answer)
		}
		c.down.push(raw, c.link.lag()+fate.delay)
	}
}

// deliver writes what a queue has, each frame when it is due.
func (c *conn) deliver(q *queue, to net.Conn) {
	for {
		f, ok := q.pop(c.done)
		if !ok || !c.wait(time.Until(f.due)) {
			return
		}
		select {
		case <-c.link.flowing():
		case <-c.done:
			return
		}
		if _, err := to.Write(f.raw); err != nil {
			return
		}
	}
}

// wait reports false if the connection breaks before d has passed.
func (c *conn) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.done:
		return false
	}
}

// frame is a command or a reply, and when it arrives.
type frame struct {
	raw []byte
	due time.Time
}

// queue is a buffer without bound: a server must never have to wait for a
// client that does not read.
type queue struct {
	mu     sync.Mutex
	frames []frame
	filled chan struct{} // has room for one
}

func newQueue() *queue { return &queue{filled: make(chan struct{}, 1)} }

func (q *queue) push(raw []byte, lag time.Duration) {
	q.mu.Lock()
	q.frames = append(q.frames, frame{raw, time.Now().Add(lag)})
	q.mu.Unlock()
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

func (q *queue) pop(done <-chan struct{}) (frame, bool) {
	for {
		q.mu.Lock()
		if len(q.frames) > 0 {
			f := q.frames[0]
			q.frames = q.frames[1:]
			q.mu.Unlock()
			return f, true
		}
		q.mu.Unlock()
		select {
		case <-q.filled:
		case <-done:
			return frame{}, false
		}
	}
}
