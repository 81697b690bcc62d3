package browser

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/console"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// crowd is a stage on a server of its own with many names in use, some of them waited for. Nothing but the console sends
// anything.
type crowd struct {
	*stage
	monitor *monitor
}

const (
	inUse     = 10_000
	contended = 300
)

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	server := harness.Start(t)
	c := &crowd{stage: stageOn(t, server, console.Config{})}
	holds, waits := c.node("holder"), c.node("waiter") // no heartbeat comes
	var all sync.WaitGroup
	next := make(chan int)
	for range 32 {
		all.Go(func() {
			for i := range next {
				if _, err := semaphore.New(holds, fmt.Sprintf("name-%05d", i), 1, semaphore.Config{}).Acquire(c.Within(patience), nil); err != nil {
					t.Errorf("holding name %d: %v", i, err)
				}
			}
		})
	}
	for i := range inUse {
		next <- i
	}
	close(next)
	all.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	for i := range contended {
		for range 1 + i%3 {
			sem := semaphore.New(waits, fmt.Sprintf("name-%05d", i), 1, semaphore.Config{})
			all.Go(func() { _, _ = sem.Acquire(ctx, nil) }) // until the test ends
		}
	}
	t.Cleanup(func() { cancel(); all.Wait() })
	c.Await("all who wait stand in line", func() bool {
		return c.read.Look(keyspace.Sem, fmt.Sprintf("name-%05d", contended-1)).Waiting == 1+(contended-1)%3
	})
	for i := range contended {
		name := fmt.Sprintf("name-%05d", i)
		c.Await("who waits for "+name+" stands in line", func() bool { return c.read.Look(keyspace.Sem, name).Waiting == 1+i%3 })
	}
	c.monitor = newMonitor(t, server)
	return c
}

// named gives the connections of a client a name.
func named(name string) func(*rueidis.ClientOption) {
	return func(o *rueidis.ClientOption) { o.ClientName = name }
}

// command is one that the console has sent.
type command struct {
	verb, key string
}

// monitor knows what the server is sent.
type monitor struct {
	*testing.T
	admin rueidis.Client

	mu    sync.Mutex
	lines []string // guarded by mu
}

func newMonitor(t *testing.T, server *harness.Server) *monitor {
	t.Helper()
	m := &monitor{T: t, admin: server.Client(t)}
	conn, err := net.Dial("tcp", server.Addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = conn.Write([]byte("MONITOR\r\n"))
	require.NoError(t, err)
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	require.True(t, lines.Scan(), "%v", lines.Err()) // OK
	go func() {
		for lines.Scan() {
			m.mu.Lock()
			m.lines = append(m.lines, lines.Text())
			m.mu.Unlock()
		}
	}()
	return m
}

// mark returns when the monitor has told all until now, with how much that is.
func (m *monitor) mark() int {
	m.Helper()
	text := fmt.Sprintf("mark %d", time.Now().UnixNano())
	require.NoError(m, m.admin.Do(context.Background(), m.admin.B().Echo().Message(text).Build()).Error())
	for {
		m.mu.Lock()
		for i := len(m.lines) - 1; i >= 0; i-- {
			if strings.Contains(m.lines[i], text) {
				m.mu.Unlock()
				return i + 1
			}
		}
		m.mu.Unlock()
		<-time.After(time.Millisecond)
	}
}

// between are the commands of connections with a name between two marks, without what keeps them.
func (m *monitor) between(name string, from, to int) (commands []command) {
	m.Helper()
	list, err := m.admin.Do(context.Background(), m.admin.B().ClientList().Build()).ToString()
	require.NoError(m, err)
	ours := map[string]bool{}
	for line := range strings.Lines(list) {
		fields := map[string]string{}
		for _, f := range strings.Fields(line) {
			name, value, _ := strings.Cut(f, "=")
			fields[name] = value
		}
		if fields["name"] == name {
			ours[fields["addr"]] = true
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, line := range m.lines[from:to] {
		// 1700000000.123456 [0 127.0.0.1:1234] "MGET" "key"
		_, rest, _ := strings.Cut(line, " [")
		where, words, _ := strings.Cut(rest, "] ")
		_, addr, _ := strings.Cut(where, " ")
		verb, words, _ := strings.Cut(words, " ")
		key, _, _ := strings.Cut(words, " ")
		verb = strings.ToLower(strings.Trim(verb, `"`))
		if ours[addr] && verb != "ping" && verb != "hello" && verb != "client" {
			commands = append(commands, command{verb, strings.Trim(key, `"`)})
		}
	}
	return commands
}

// spent is how long the server has worked on all commands.
func (m *monitor) spent() (sum time.Duration) {
	m.Helper()
	info, err := m.admin.Do(context.Background(), m.admin.B().Info().Section("commandstats").Build()).ToString()
	require.NoError(m, err)
	for line := range strings.Lines(info) {
		if _, rest, found := strings.Cut(line, "usec="); found {
			text, _, _ := strings.Cut(rest, ",")
			n, err := strconv.ParseInt(text, 10, 64)
			require.NoError(m, err)
			sum += time.Duration(n) * time.Microsecond
		}
	}
	return sum
}
