// Package failover breaks connections of a rueidis client that lead to a replica, once the client's address leads
// elsewhere. rueidis itself keeps connections as long as they work.
package failover

import (
	"context"
	"maps"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/redis/rueidis"
)

const (
	// refusedFor is how long a replica answers until the connections are broken. A
	// failover in which the address does not move is over sooner, as a rule. The second renewal
	// of a lease of 5 s, a sixth of it after the first, comes behind it.
	refusedFor = 800 * time.Millisecond
	// firstBreak and lastBreak are the shortest and the longest pause between two breaks.
	firstBreak, lastBreak = 2 * time.Second, time.Minute
	// breakLimit bounds one break, which takes a few ways there and back.
	breakLimit = 5 * time.Second
)

// Connections is what is known of the connections of one rueidis client: a replica may answer on them, though their
// address leads elsewhere.
type Connections struct {
	client rueidis.Client
	series atomic.Bool // first is set

	mu       sync.Mutex
	first    time.Time     // guarded by mu: since when a replica answers, zero if none does
	last     time.Time     // guarded by mu: when one last did
	broke    time.Time     // guarded by mu: when the connections were last broken
	pause    time.Duration // guarded by mu: for how long they then stay
	breaking bool          // guarded by mu
}

// Refused notes that a replica has answered an attempt that started at the given time. If one has answered
// for long enough, it breaks the connections before it returns. count is how many led to a replica, 0 if the server does
// not tell. The connections are not broken again within the pause.
func (m *Connections) Refused(started time.Time) (count int, pause time.Duration, broken bool) {
	if !m.due(started) {
		return 0, 0, false
	}
	// It has no deadline, see quit.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer time.AfterFunc(breakLimit, cancel).Stop()
	count, broken = m.breakAll(ctx)
	return count, m.over(broken), broken
}

// Succeeded notes that an attempt has.
func (m *Connections) Succeeded() {
	if m.series.Load() {
		m.served()
	}
}

// served ends the series of refusals, unless one came within the last second: a script that
// writes nothing succeeds on a replica too, and a connection that broke by itself leads to
// the new master while others lead to the old one.
func (m *Connections) served() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.last) >= refusedFor {
		m.begin(time.Time{})
	}
}

// begin sets when the series began; m.mu is held.
func (m *Connections) begin(first time.Time) {
	m.first = first
	m.series.Store(!first.IsZero())
}

// due notes that a replica has answered, and reports whether the caller is to break the
// connections, and then to call over. The answers to attempts that started before the last break say
// nothing of the connections that there are now.
func (m *Connections) due(started time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.breaking || started.Before(m.broke) {
		return false
	}
	now := time.Now()
	if now.Sub(m.last) >= lastBreak {
		m.pause = 0
	}
	if m.last = now; m.first.IsZero() {
		m.begin(now)
	}
	m.breaking = now.Sub(m.first) >= refusedFor && now.Sub(m.broke) >= m.pause
	return m.breaking
}

// over notes the end of a break, and returns how long the next one is off at the least.
func (m *Connections) over(broken bool) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.breaking, m.broke = false, time.Now()
	m.begin(time.Time{})
	if broken {
		m.pause = min(max(2*m.pause, firstBreak), lastBreak)
	}
	return m.pause
}

// Rueidis sends a command with a key over any of the connections that it multiplexes, by chance. So
// both questions and QUITs are sent often enough to reach each of them, all but surely.
const (
	anyKey  = "berth" // not of slot 0, which counts as none
	least   = 32      // how often at the least, and
	each    = 8       // how often for each connection that is known,
	most    = 2048    // and at the most
	retries = 3       // for those that were missed
)

// breakAll breaks the connections, and returns how many led to a replica. It leaves them if none
// does, and breaks them unseen if the server does not tell (0, true). No single one can be aimed at:
// CLIENT KILL needs a right that users do not have, and its id may be a stranger's
// on the server that a new connection leads to.
func (m *Connections) breakAll(ctx context.Context) (count int, broken bool) {
	old, told := m.replicas(ctx)
	if !told {
		m.quit(ctx, least)
		return 0, true
	}
	count = len(old)
	for range retries {
		if len(old) == 0 {
			break
		}
		m.quit(ctx, min(max(least, each*len(old)), most))
		left, _ := m.replicas(ctx)
		maps.DeleteFunc(old, func(id int64, _ bool) bool { return !left[id] })
	}
	return count, count > 0
}

// replicas returns the ids of the connections that lead to a replica. HELLO needs no right. It
// returns false where the server does not know that command.
func (m *Connections) replicas(ctx context.Context) (ids map[int64]bool, told bool) {
	var mu sync.Mutex
	all, ids, told := map[int64]bool{}, map[int64]bool{}, true
	ask := func() {
		hello := m.client.Do(ctx, m.client.B().Arbitrary("HELLO").Build().SetSlot(anyKey))
		fields, err := hello.AsMap()
		if _, answered := rueidis.IsRedisErr(err); err != nil && !answered {
			return // the connection broke meanwhile
		}
		number := fields["id"]
		id, unreadable := number.AsInt64()
		role := fields["role"]
		word, _ := role.ToString()
		mu.Lock()
		defer mu.Unlock()
		if err != nil || unreadable != nil {
			told = false
			return
		}
		all[id] = true
		if word == "replica" {
			ids[id] = true
		}
	}
	for asked := 0; told && ctx.Err() == nil; {
		more := min(max(least, each*len(all)), most) - asked
		if more <= 0 {
			break
		}
		asked += more
		atOnce(more, ask)
	}
	return ids, told
}

// quit sends QUITs at once, so that they reach connections before their successors are there. A PING
// behind each has rueidis notice the end of an idle connection, and not the next call. With a deadline in the
// context rueidis would write both before it reads, and stand still on a connection without room for both.
func (m *Connections) quit(ctx context.Context, times int) {
	atOnce(times, func() {
		m.client.DoMulti(ctx,
			m.client.B().Arbitrary("QUIT").Build().SetSlot(anyKey), m.client.B().Arbitrary("PING").Build().SetSlot(anyKey))
	})
}

// atOnce runs f so many times at once: however far off the server is, that takes one way there and back.
func atOnce(times int, f func()) {
	var all sync.WaitGroup
	for range times {
		all.Go(f)
	}
	all.Wait()
}

// shared has the Connections of each rueidis client that a replica has answered. It is the one state of the package:
// nothing else leads from one user of a client to the others, who need not be closed. An
// entry goes after the last of them.
var shared = struct {
	sync.Mutex
	of map[rueidis.Client]weak.Pointer[Connections]
}{of: map[rueidis.Client]weak.Pointer[Connections]{}}

// Of returns what all who use a client share. One that cannot be compared, because somebody has
// wrapped it by value, is shared by nobody.
func Of(client rueidis.Client) *Connections {
	if !reflect.ValueOf(client).Comparable() {
		return &Connections{client: client}
	}
	shared.Lock()
	defer shared.Unlock()
	if m := shared.of[client].Value(); m != nil {
		return m
	}
	m := &Connections{client: client}
	shared.of[client] = weak.Make(m)
	runtime.AddCleanup(m, forget, client)
	return m
}

// forget drops the entry of a client, unless there is a new one.
func forget(client rueidis.Client) {
	shared.Lock()
	defer shared.Unlock()
	if shared.of[client].Value() == nil {
		delete(shared.of, client)
	}
}
