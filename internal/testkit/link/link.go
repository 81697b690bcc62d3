package link

import (
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/scriptkit"
)

// errCut is what dialing a link that is cut returns. It is no timeout, so that
// rueidis does not wait.
var errCut = &net.OpError{Op: "dial", Net: "link", Err: errors.New("the link is cut")}

// Command is one command on its way to the server.
type Command struct {
	// Name is the command in upper case; the script's name where EVALSHA or EVAL runs
	// one that the link knows.
	Name string
	// Args are its arguments, without the name.
	Args []string
}

// Fate is what happens to one command. The zero value lets it pass.
type Fate struct {
	kind   kind
	delay  time.Duration
	answer string
	decide func() Fate // of onceRun
}

type kind int

const (
	pass kind = iota
	loseRequest
	loseReply
	late
	refuse
	replace
	onceRun
)

var (
	// Pass lets the command and its reply pass.
	Pass = Fate{}
	// LoseRequest breaks the connection before the server has the command.
	LoseRequest = Fate{kind: loseRequest}
	// LoseReply breaks the connection when the server has run the command.
	LoseReply = Fate{kind: loseReply}
	// Late breaks the connection, and the server gets the command when
	// DeliverLate is called.
	Late = Fate{kind: late}
)

// Refuse has the server answer with an error instead of running the command.
func Refuse(answer string) Fate { return Fate{kind: refuse, answer: answer} }

// Answer has the server run the command, and the client read this reply, as it goes over the wire, instead of the server's.
func Answer(raw string) Fate { return Fate{kind: replace, answer: raw} }

// OnceRun has decide say what happens to the reply, when it has come: Slow, LoseReply or Pass.
// A script that the server did not know passes, for it has not run.
func OnceRun(decide func() Fate) Fate { return Fate{kind: onceRun, decide: decide} }

// Slow lets the reply, and all behind it on that connection, come later by d.
func Slow(d time.Duration) Fate { return Fate{delay: d} }

// Link is all connections of one client, or of several. The zero value is not ready; see New.
type Link struct {
	scripts func(sha string) *scriptkit.Script

	mu     sync.Mutex // guards all below
	dial   func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)
	fate   func(Command) Fate
	delay  func() time.Duration
	deaf   bool
	cut    bool
	flow   chan struct{} // closed while data flows
	conns  map[*conn]bool
	counts map[string]int
	late   [][]byte
}

// New returns a link on which everything passes. scripts finds a script by its SHA-1,
// nil where there is none; it may be nil itself. The server need not know those scripts:
// the link sends their source with each call, and answers SCRIPT LOAD in its place. An
// embedded server would read the source anew for each SCRIPT LOAD, which takes longer than
// most tests; of what it runs it reads each source once in a process.
func New(scripts func(sha string) *scriptkit.Script) *Link {
	flow := make(chan struct{})
	close(flow)
	return &Link{scripts: scripts, flow: flow, conns: make(map[*conn]bool), counts: make(map[string]int)}
}

// Wrap makes a client use the link. It is an option of embedded.Server.Client, of all
// clients the same server's.
func (l *Link) Wrap(option *rueidis.ClientOption) {
	dial := option.DialCtxFn
	l.mu.Lock()
	l.dial = dial
	l.mu.Unlock()
	option.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
		l.mu.Lock()
		cut := l.cut
		l.mu.Unlock()
		if cut {
			return nil, errCut
		}
		far, err := dial(ctx, addr, d, cfg)
		if err != nil {
			return nil, err
		}
		return l.open(far), nil
	}
}

// RarePings keeps rueidis from sending a PING a second, which makes hours of
// virtual time long, and from counting the machine's processors: a client has two
// connections for its calls.
func RarePings(option *rueidis.ClientOption) {
	option.PipelineMultiplex = 1
	option.Dialer.KeepAlive = time.Hour
	option.ConnWriteTimeout = 10 * time.Second
}

// Slim keeps rueidis from making more than a megabyte for each connection, which carries 256 commands at a time then, not
// 1024. It is for Berth's own tests: where those of a user stall a server, as many calls wait as in production.
func Slim(option *rueidis.ClientOption) {
	option.RingScaleEachConn, option.ReadBufferEachConn, option.WriteBufferEachConn = 8, 16<<10, 16<<10
}

// OnCommand decides about every command from now on. f runs on the goroutine
// that carries the command.
func (l *Link) OnCommand(f func(Command) Fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fate = f
}

// Once gives the next command of that name a fate, and lets all others pass.
func (l *Link) Once(name string, fate Fate) {
	var once sync.Once
	l.OnCommand(func(c Command) (f Fate) {
		if c.Name == name {
			once.Do(func() { f = fate })
		}
		return f
	})
}

// Delay makes everything take time, in both directions: d is asked for each
// command and each reply.
func (l *Link) Delay(d func() time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = d
}

// Deafen drops what is published to the client, or lets it pass again.
func (l *Link) Deafen(deaf bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deaf = deaf
}

// Cut breaks all connections, and lets no new one be made until Mend.
func (l *Link) Cut() {
	l.mu.Lock()
	l.cut = true
	l.mu.Unlock()
	l.Break()
}

// Mend lets connections be made again.
func (l *Link) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

// Break breaks all connections. The client may make new ones.
func (l *Link) Break() {
	l.mu.Lock()
	conns := make([]*conn, 0, len(l.conns))
	for c := range l.conns {
		conns = append(conns, c)
	}
	l.mu.Unlock()
	for _, c := range conns {
		c.close()
	}
}

// Stall holds back everything, in both directions, until Flow.
func (l *Link) Stall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.flow:
		l.flow = make(chan struct{})
	default:
	}
}

// Flow lets pass what Stall held back, in its order.
func (l *Link) Flow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.flow:
	default:
		close(l.flow)
	}
}

// DeliverLate gives the server the commands whose fate was Late, one after the
// other, and returns how many those were. Nobody reads their replies.
func (l *Link) DeliverLate() (int, error) {
	l.mu.Lock()
	commands, dial := l.late, l.dial
	l.late = nil
	l.mu.Unlock()
	for _, raw := range commands {
		far, err := dial(context.Background(), "", nil, nil)
		if err != nil {
			return 0, err
		}
		if _, err := far.Write(raw); err != nil {
			return 0, err
		}
		if _, _, err := readReply(newReader(far)); err != nil {
			return 0, err
		}
		if err := far.Close(); err != nil {
			return 0, err
		}
	}
	return len(commands), nil
}

// Count is how many commands of that name have been sent since the last Reset.
func (l *Link) Count(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[name]
}

// Counts is how many commands have been sent since the last Reset, by name.
func (l *Link) Counts() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := make(map[string]int, len(l.counts))
	for name, n := range l.counts {
		counts[name] = n
	}
	return counts
}

// Reset begins to count anew.
func (l *Link) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.counts)
}

// Open is how many connections there are.
func (l *Link) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// command counts a command, decides on its fate, and returns what the server gets.
func (l *Link) command(words []string, raw []byte) ([]byte, Fate) {
	c := Command{Name: strings.ToUpper(words[0]), Args: words[1:]}
	switch {
	case l.scripts == nil || len(c.Args) == 0:
	case c.Name == "EVALSHA":
		if s := l.scripts(c.Args[0]); s != nil {
			c.Name = s.Name
			raw = command(append([]string{"EVAL", s.Source()}, c.Args[1:]...)...)
		}
	case c.Name == "EVAL":
		if s := l.scripts(sum(c.Args[0])); s != nil {
			c.Name = s.Name
		}
	case c.Name == "SCRIPT" && len(c.Args) == 2:
		if s := l.scripts(sum(c.Args[1])); s != nil {
			raw = command("ECHO", s.SHA)
		}
	}
	l.mu.Lock()
	l.counts[c.Name]++
	decide := l.fate
	l.mu.Unlock()
	fate := Pass
	if decide != nil {
		fate = decide(c)
	}
	if fate.kind == late {
		l.mu.Lock()
		l.late = append(l.late, raw)
		l.mu.Unlock()
	}
	return raw, fate
}

// sum is a script's SHA-1, as servers write it.
func sum(source string) string {
	hash := sha1.Sum([]byte(source))
	return hex.EncodeToString(hash[:])
}

// lag is how long the next frame takes.
func (l *Link) lag() time.Duration {
	l.mu.Lock()
	delay := l.delay
	l.mu.Unlock()
	if delay == nil {
		return 0
	}
	return delay()
}

// flowing is closed while data flows.
func (l *Link) flowing() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flow
}

func (l *Link) isDeaf() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deaf
}
