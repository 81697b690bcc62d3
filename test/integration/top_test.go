package integration

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// jam makes a semaphore that two hold and some wait for, a pool that is leased and waited for, and such a lock. It
// returns the waits for the semaphore.
func (w *world) jam(waiting int) (waits []*taking) {
	w.Helper()
	for _, label := range []string{"host-1/first", "host-2/second"} {
		w.take(w.sem(w.node(node.Config{Label: label}), "gpu", 2), nil)
	}
	n := w.node(node.Config{Label: "host-3/waits"})
	for i := range waiting {
		waits = append(waits, w.queue(w.sem(n, "gpu", 2), nil, i+1))
	}
	locks := w.locker(node.Config{Label: "host-4/lock"})
	_, err := locks.Lock(w.Within(patience), "nightly", nil)
	require.NoError(w, err)
	testkit.Begin(w.Within(2*patience), func(ctx context.Context) (*qlock.Lock, error) {
		return locks.Lock(ctx, "nightly", nil)
	})
	pool := w.proxies(w.node(node.Config{Label: "host-5/pool"}), poolConfig{})
	w.add(pool, "p1", "p2")
	for range 2 {
		_, err = pool.Allocate(w.Within(patience), nil)
		require.NoError(w, err)
	}
	testkit.Begin(w.Within(2*patience), func(ctx context.Context) (*allocation, error) { return pool.Allocate(ctx, nil) })
	return waits
}

// What each key does is tested in virtual time. Here are keys as a terminal sends them, and windows as it has them.
func TestTopInATerminal(t *testing.T) {
	w := private(t)
	program := w.berth()
	waits := w.jam(5)
	term := w.runAt(80, 24, program, "top")
	t.Log(term.shows("The most contended names, most waiting first", "> sem gpu 2/2 5", "full", "/ 1 of 3/", "q ends"))
	for _, shown := range []string{"semaphores", "locks", "pools", "names"} {
		term.press("Tab")
		term.shows("The most contended " + shown)
	}
	term.press("?")
	term.shows("r release the selected claim", "any key goes back")
	term.press("q")
	term.press("c")
	term.shows("Circles: claims that wait for each other", "2 circles found", "by node: possible", "To end it, release")
	term.press("Escape")
	term.shows("The most contended names")
	term.press("a")
	term.shows("All names in use, page 1", "/ 1 of 3/")
	for _, key := range [][2]string{{"Down", "2"}, {"Up", "1"}, {"NPage", "3"}, {"PPage", "1"}, {"G", "3"}, {"g", "1"}} {
		term.press(key[0])
		term.shows("/ " + key[1] + " of 3/")
	}
	term.press("a")
	term.shows("The most contended names", "> sem gpu 2/2 5")
	term.press("Enter")
	t.Log(term.shows("semaphore gpu", "Held by 2 claims", "In line 5 claims", "host-1/first has held it for"))
	term.press("j", "Enter")
	term.shows("/claim [0-9a-f]{16}/", "host-2/second")
	term.press("Escape")
	term.shows("Held by 2 claims")

	term.press("p")
	term.types("soon")
	term.shows("! this is not a time")
	term.press("C-u")
	term.types("1h")
	term.types("deploy")
	term.shows(`Pause semaphore "gpu" for 1h00m.`, `The reason: "deploy"`, "Do this?")
	term.press("n")
	term.shows("nothing was done")
	require.Nil(t, w.reader().Look(keyspace.Sem, "gpu").Pause)
	term.press("p")
	term.types("1h")
	term.types("deploy")
	term.confirms("Pause semaphore")
	term.shows("pause gpu: paused for 1h00m", `more: "deploy"`)
	require.Equal(t, "deploy", w.reader().Look(keyspace.Sem, "gpu").Pause.Reason)
	term.press("u", "Enter")
	term.confirms("End the pause of semaphore")
	term.shows("unpause gpu: no longer paused", "full: 2 of 2 held")
	term.press("G")
	term.shows("host-3/waits has waited")
	term.press("r")
	term.types("stuck")
	term.confirms("Release claim", "by force", `The reason: "stuck"`)
	term.shows("release gpu: the claim is released", "This is not there any more")
	waits[4].Fails(w, berth.ErrNotAcquired)
	term.press("Escape")
	term.shows("The most contended names")
	term.press("/")
	term.types(proxies)
	term.shows("> pool " + proxies)
	term.press("Enter")

	term.resize(30, 8)
	term.shows("The window is too small: it has 30x8")
	term.resize(200, 50)
	term.shows("pool "+proxies, "Held by 2 claims", "Resources that are held")
	term.press("Escape")
	term.shows("The most contended names")
	term.press("Escape") // drops the filter
	term.shows("sem gpu 2/2 4")
	// A server that is away leaves the rows with their age; it is read again when it is back.
	w.server.Stop(t)
	term.shows("old: the server has not answered since", "sem gpu 2/2 4")
	w.server.Cont(t)
	term.shows("/sem gpu 2/2 4 .* full [0-2]s /")
	w.server.Kill(t)
	term.shows("old, and cannot be read anew:", "sem gpu 2/2 4")
	w.server.Restart(t)
	w.do("PING")
	term.press("a")
	term.shows("All names in use")
	term.press("q")
	term.shows("ended with 0", "the terminal is as it was")
}
