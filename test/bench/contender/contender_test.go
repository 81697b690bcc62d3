package contender

import (
	"bufio"
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/scripts/composed"
	"github.com/berth-go/berth/test/bench/server"
)

func startServer(t *testing.T) string {
	t.Helper()
	addr, stop, err := server.Start(context.WithoutCancel(t.Context())) // until the last cleanup
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stop()) })
	return addr
}

func open(t *testing.T, c Contender, addr string) Locker {
	t.Helper()
	l, err := c.Open(addr)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return l
}

func TestEachLocksOutTheNextAndSurvivesTheEndOfTheWaitsContext(t *testing.T) {
	addr := startServer(t)
	for _, c := range Lockers {
		t.Run(c.Name, func(t *testing.T) {
			found, err := Find(c.Name)
			require.NoError(t, err)
			first, second := open(t, found, addr), open(t, found, addr)
			wait, end := context.WithCancel(t.Context())
			unlock, err := first.Lock(wait, c.Name)
			require.NoError(t, err)
			if c.Name != "rueidislock" { // whose lock ends with that context
				end()
			}
			ended, cancel := context.WithCancel(t.Context())
			refused := make(chan error)
			go func() {
				_, err := second.Lock(ended, c.Name)
				refused <- err
			}()
			cancel()
			require.Error(t, <-refused)
			require.NoError(t, unlock())
			end()
			unlock, err = second.Lock(t.Context(), c.Name)
			require.NoError(t, err)
			require.NoError(t, unlock())
		})
	}
	_, err := Find("nobody")
	require.Error(t, err)
}

func TestSemaphoresAndPoolsGrantAsManyAsTheyHave(t *testing.T) {
	addr := startServer(t)
	for _, c := range append(Semaphores, Pools...) {
		t.Run(c.Name, func(t *testing.T) {
			l, all := open(t, c, addr), Capacity
			if slices.ContainsFunc(Pools, func(p Contender) bool { return p.Name == c.Name }) {
				all = Size
			}
			var releases []func() error
			for range all {
				unlock, err := l.Lock(t.Context(), c.Name)
				require.NoError(t, err)
				releases = append(releases, unlock)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := l.Lock(ctx, c.Name)
			require.Error(t, err)
			for _, unlock := range releases { // the first is granted once more
				require.NoError(t, unlock())
				again, err := l.Lock(t.Context(), c.Name)
				require.NoError(t, err)
				require.NoError(t, again())
			}
		})
	}
}

func TestAFreeNameIsLockedThoughTheServerIsSlow(t *testing.T) {
	addr := startServer(t)
	redis, err := rueidis.NewClient(Option(addr))
	require.NoError(t, err)
	defer redis.Close()
	for _, c := range Lockers {
		t.Run(c.Name, func(t *testing.T) {
			l := open(t, c, addr)
			require.NoError(t, redis.Do(t.Context(), redis.B().ClientPause().Timeout(200).Build()).Error())
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			unlock, err := l.Lock(ctx, c.Name)
			require.NoError(t, err)
			require.NoError(t, unlock())
		})
	}
}

// sent are the commands of a lock and its release, word by word: those that the client
// sent, and those that its scripts ran.
func sent(t *testing.T, c Contender, addr string) (plain, inScripts [][]string) {
	t.Helper()
	l := open(t, c, addr)
	cycle := func(name string) {
		unlock, err := l.Lock(t.Context(), name)
		require.NoError(t, err)
		require.NoError(t, unlock())
	}
	const name = "cycle"
	cycle(name) // connects and loads scripts
	for again := true; again; {
		begun := time.Now()
		plain, inScripts = during(t, addr, func() { cycle(name) })
		again = time.Since(begun) > time.Second // by then a heartbeat may be among them
	}
	return plain, inScripts
}

// during are the commands that the server runs while something is done.
func during(t *testing.T, addr string, do func()) (plain, inScripts [][]string) {
	t.Helper()
	redis, err := rueidis.NewClient(Option(addr))
	require.NoError(t, err)
	defer redis.Close()
	var beats []string // as MONITOR tells them
	for _, script := range []string{"thin_renew", "lock_renew", "semaphore_renew", "pool_renew"} {
		beats = append(beats, strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(composed.Library().Script(script).Source()))
	}
	lines := monitor(t, addr)
	do()
	require.NoError(t, redis.Do(t.Context(), redis.B().Echo().Message("over").Build()).Error())
	for line := range lines {
		// 1763779200.123456 [0 127.0.0.1:40000] "get" "key", or [0 lua]
		from, said, ok := strings.Cut(line, `] "`)
		if !ok {
			continue
		}
		words := strings.Split(strings.TrimSuffix(said, `"`), `" "`)
		words[0] = strings.ToLower(words[0])
		switch {
		case words[0] == "echo":
			return plain, inScripts
		case slices.Contains([]string{"hello", "client", "ping", "info"}, words[0]):
		case words[0] == "script" && slices.ContainsFunc(beats, func(source string) bool { return strings.Contains(said, source) }):
			// Berth loads what its first heartbeat will run, beside the locking.
		case strings.HasSuffix(from, " lua"):
			inScripts = append(inScripts, words)
		default:
			plain = append(plain, words)
		}
	}
	t.Fatal("the server has stopped telling what it runs")
	return nil, nil
}

// monitor returns what MONITOR tells, until the test ends.
func monitor(t *testing.T, addr string) <-chan string {
	t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", addr)
	require.NoError(t, err)
	_, err = conn.Write([]byte("MONITOR\r\n"))
	require.NoError(t, err)
	lines := bufio.NewScanner(conn)
	require.True(t, lines.Scan())
	require.Equal(t, "+OK", lines.Text())
	told := make(chan string, 1000)
	go func() {
		defer close(told)
		for lines.Scan() {
			told <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		for range told { // until its goroutine has ended
		}
	})
	return told
}

func TestRawRunsTheCommandsOfBerth(t *testing.T) {
	addr := startServer(t)
	_, want := sent(t, Lockers[0], addr)
	_, got := sent(t, Raw, addr)
	require.Equal(t, names(want), names(got))
	for i := range want {
		require.Len(t, got[i], len(want[i]), "%s beside %s", got[i], want[i])
		for j := range want[i] { // the records differ by where they come from
			require.InEpsilon(t, len(want[i][j]), len(got[i][j]), 0.25, "%s beside %s", got[i][j], want[i][j])
		}
	}
}

// names are the first words of commands.
func names(commands [][]string) []string {
	var names []string
	for _, words := range commands {
		names = append(names, words[0])
	}
	return names
}

func TestPlainCommandsAreSaid(t *testing.T) {
	addr := startServer(t)
	published := map[string]int{"redis-semaphore": 4, "asynq": 3, "counting": 11, "redis-allocator": 16}
	for _, c := range slices.Concat(Lockers, Semaphores, Pools, []Contender{Raw}) {
		t.Run(c.Name, func(t *testing.T) {
			plain, inScripts := sent(t, c, addr)
			if want, ok := published[c.Name]; ok {
				require.Len(t, inScripts, want)
			}
			require.Len(t, plain, 2, "a lock and an unlock")
			var outside []string
			for _, command := range names(plain) {
				if command != "evalsha" {
					outside = append(outside, command)
				}
			}
			require.Equal(t, c.Plain, outside)
			for _, command := range outside {
				require.NotContains(t, names(inScripts), command, "the server's statistics cannot tell them apart")
			}
		})
	}
}

func TestMain(m *testing.M) {
	// rueidis looks at a server's topology once more some time after it was closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}
