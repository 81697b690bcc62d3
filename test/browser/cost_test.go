package browser

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/console"
)

// cost is what a page that is open has cost the server.
type cost struct {
	commands []command
	elapsed  time.Duration
	spent    time.Duration
}

// follow has pages be live without a browser, and says what so many readings have cost that all of them have heard.
func (c *crowd) follow(path string, clients, readings int) cost {
	c.Helper()
	served := c.serve(console.Config{MaxStreams: 4 * clients}) // a quarter is for one address
	ctx, cancel := context.WithCancel(context.Background())
	var heard []*atomic.Int64
	for range clients {
		heard = append(heard, c.stream(ctx, served.URL+"/"+path))
	}
	defer func() {
		cancel()
		require.NoError(c, c.ends(c.Within(patience))) // what it has open is read no longer
	}()
	return c.measure(readings, func() int64 {
		least := heard[0].Load()
		for _, h := range heard {
			least = min(least, h.Load())
		}
		return least
	})
}

// measure says what so many readings have cost. What is asked once, at first, is not counted.
func (c *crowd) measure(readings int, heard func() int64) cost {
	c.Helper()
	c.Await("all have heard of two", func() bool { return heard() >= 2 })
	c.quiet()
	at := time.Now() // before the first mark: what is counted has come since
	begun, first, spent := heard(), c.monitor.mark(), c.monitor.spent()
	c.Await("all have heard of more", func() bool { return heard() >= begun+int64(readings) })
	commands := c.monitor.between(c.reads, first, c.monitor.mark())
	return cost{commands, time.Since(at), c.monitor.spent() - spent}
}

// quiet waits until nothing is read for a moment: the search for cycles that goes on beside what is looked at is over. The next one
// begins 30 s after it began at the earliest, and is not a part of what is measured.
func (c *crowd) quiet() {
	c.Helper()
	c.Await("nothing is read", func() bool {
		first := c.monitor.mark()
		<-time.After(200 * time.Millisecond)
		return len(c.monitor.between(c.reads, first, c.monitor.mark())) == 0
	})
}

// search says what the search for cycles costs that goes on beside a page. Of all commands only those are left out that are sure to be
// of the page's name.
func (c *crowd) search(path, name string) (found cost) {
	c.Helper()
	served := c.serve(console.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	defer func() {
		cancel()
		require.NoError(c, c.ends(c.Within(patience)))
	}()
	at, first, spent := time.Now(), c.monitor.mark(), c.monitor.spent()
	heard := c.stream(ctx, served.URL+"/"+path)
	c.Await("a reading is heard of", func() bool { return heard.Load() >= 1 })
	c.quiet()
	found = cost{c.monitor.between(c.reads, first, c.monitor.mark()), time.Since(at), c.monitor.spent() - spent}
	found.commands = slices.DeleteFunc(found.commands, func(of command) bool { return strings.Contains(of.key, "{"+name+"}") })
	return found
}

// stream is a page that is live: how many readings it has heard of.
func (c *crowd) stream(ctx context.Context, address string) *atomic.Int64 {
	c.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	require.NoError(c, err)
	transport := &http.Transport{}
	answer, err := transport.RoundTrip(request)
	require.NoError(c, err)
	require.Equal(c, http.StatusOK, answer.StatusCode)
	var heard atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "event: beat") {
				heard.Add(1)
			}
		}
	}()
	c.Cleanup(func() { _ = answer.Body.Close(); <-ended; transport.CloseIdleConnections() })
	return &heard
}

// count is how many of the commands match, as "verb key".
func (c cost) count(pattern string) (n int) {
	match := regexp.MustCompile(pattern)
	for _, command := range c.commands {
		if match.MatchString(command.verb + " " + command.key) {
			n++
		}
	}
	return n
}

// atMost is how many readings can have been under way meanwhile: those that have begun, and one from before.
func (c cost) atMost(every time.Duration) int { return int(c.elapsed/every) + 2 }

// of says what was measured, for people.
func (c cost) of(t *testing.T, what string, readings int) {
	t.Helper()
	t.Logf("%s: %d readings in %v, %.1f commands each; the server worked %v, %.2f ms/s", what, readings, c.elapsed.Round(10*time.Millisecond),
		float64(len(c.commands))/float64(max(readings, 1)), c.spent.Round(10*time.Microsecond), c.spent.Seconds()*1000/c.elapsed.Seconds())
}

// Each reading of a name asks for the time once.
const readsName = `^time `

const commandsOfAName = 6 // at most, a reading

// commandsOfASearch is how many a search for cycles sends of each name that somebody waits for, at most once in 30 s and for 1/150 of
// the time beside a page.
const commandsOfASearch = 15

// ofName fails if a name was read more often, or at more cost, than it may be.
func (c cost) ofName(t *testing.T, what string) {
	t.Helper()
	readings := c.count(readsName)
	c.of(t, what, readings)
	require.LessOrEqual(t, readings, c.atMost(watch.NameEvery), what)
	// One reading may be there by half, at each end.
	require.LessOrEqual(t, len(c.commands), commandsOfAName*(readings+2), what)
}

const (
	shards = 16  // range reads of a pass
	read   = 200 // names of a pass at most
)

// ofOverview fails if the overview was read more often, or more of it, than may be.
func (c cost) ofOverview(t *testing.T, what string) {
	t.Helper()
	const ranged = ` .*:waits:\{\d+\}:names$`
	ranges := c.count(ranged)
	passes := (ranges + shards - 1) / shards
	c.of(t, what, passes)
	require.LessOrEqual(t, passes, c.atMost(watch.OverviewEvery), what)
	name := regexp.MustCompile(`\{name-\d+\}`)
	all := 0
	for seen, i := map[string]bool{}, 0; i < len(c.commands); i++ {
		if strings.Contains(c.commands[i].key, ":waits:{") {
			clear(seen) // a pass begins
			continue
		}
		if tag := name.FindString(c.commands[i].key); tag != "" && !seen[tag] {
			seen[tag], all = true, all+1
		}
		require.LessOrEqual(t, len(seen), read, what)
	}
	require.Positive(t, all, what)
	t.Logf("%s: %d names read in %d passes", what, all, passes)
}

// What an open page costs does not grow with how many look: plain clients of the stream, which are what a browser is to the
// console, and some real tabs.
func TestWhatAnOpenPageCosts(t *testing.T) {
	c := newCrowd(t)
	name, overview := "events?page=name&kind=sem&name=name-00000", "events?page=overview"
	for _, clients := range []int{1, 50} {
		c.follow(name, clients, 6).ofName(t, fmt.Sprintf("a name, %d clients", clients))
		c.follow(overview, clients, 3).ofOverview(t, fmt.Sprintf("the overview, %d clients", clients))
	}

	// By now the registry has all.
	search := c.search(name, "name-00000")
	search.of(t, "a search for cycles", 1)
	require.Greater(t, len(search.commands), contended)
	require.LessOrEqual(t, len(search.commands), commandsOfASearch*contended)

	tabs := func(path string, readings int) cost {
		c.console = c.serve(console.Config{})
		var all []*look
		for range 3 {
			l := c.open(path)
			// A reading is heard of by the moment at which it was made.
			require.NoError(t, l.Eval(l.step(), `(() => {
				window.heard = new Set();
				const e = document.querySelector(".standing time");
				new MutationObserver(() => heard.add(e.dataset.age)).observe(e, {attributes: true});
			})()`, nil))
			all = append(all, l)
		}
		return c.measure(readings, func() int64 {
			least := is[int64](all[0], `heard.size`)
			for _, l := range all {
				least = min(least, is[int64](l, `heard.size`))
			}
			return least
		})
	}
	tabs("name?kind=sem&name=name-00000", 4).ofName(t, "a name, 3 tabs")
	tabs("./", 2).ofOverview(t, "the overview, 3 tabs")
}
