package commands_test

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/golden"
	"github.com/berth-go/berth/pkg/keyspace"
)

// shown are the commands that read.
var shown = []string{
	"sem ls", "sem show gpu", "sem show paused", "sem show disk", "sem explain gpu", "sem explain paused",
	"lock ls", "lock show nightly", "lock show digest", "lock show report", "lock show migration", "lock show none",
	"lock explain table-a", "lock explain backup",
	"pool ls", "pool show proxies", "pool show proxies --all", "pool show accounts", "pool show none",
	"pool show proxies bound --bindings", "pool show proxies resting", "pool explain proxies", "pool explain mailboxes",
	"pool next proxies", "pool inspect proxies", "pool inspect accounts", "pool binding ls proxies",
	"cycles", "explain gpu", "explain none", "show gpu", "show none", "ls", "ls --sort state", "ls --output name", "ls --output wide", "ps", "ps --sort left --output wide", "ps --kind lock --output name",
	"top", "node ls", "once ls", "once show digest", "once show report", "leader ls", "leader show nightly", "check",
}

// changing are the commands that change something, in the order in which they are run.
var changing = []string{
	"sem resize gpu 4 --keep", "sem pause gpu --for 1h --reason why", "sem unpause gpu", "sem want gpu", "sem sweep",
	"lock extend migration --by 10m --force", "lock extend table-a --by 10m --force", "lock release migration --force",
	"pool add proxies new free", "pool rest proxies free --for 10m --reason tired", "pool remove proxies new", "pool replace accounts x y",
	"pool set proxies --cooldown 5s --policy most-recent", "pool set proxies bound --max-sharers 2",
	"pool binding set proxies user-2 free", "pool binding remove proxies user-2", "pool release accounts x --force",
	"drain --label none --stop", "node flush", "lock want nightly", "pool want proxies",
}

// What each command prints in the scene of package golden, with --json and without it.
func TestWhatCommandsPrint(t *testing.T) {
	golden.In(t, func(w *testkit.World) {
		url, shut := open(w)
		defer shut()
		address := strings.NewReplacer(strings.TrimSuffix(strings.TrimPrefix(url, "redis://"), "?client_cache=0"), "<address>")
		compare := func(command string) {
			args := strings.Fields(command)
			file, _, _ := strings.Cut(command, " --for")
			file = strings.NewReplacer(" --", "-", " ", "-").Replace(file)
			if !slices.Contains(changing, command) {
				r := apptest.Call(t, url, args...)
				golden.Compare(t, file+".txt", address.Replace(fmt.Sprintf("%s%sexit code %d\n", r.Out, r.Err, r.Code)))
			}
			golden.Compare(t, file+".json", address.Replace(apptest.Call(t, url, append(args, "--json")...).Out))
		}
		for _, command := range slices.Concat(shown, changing) {
			compare(command)
		}
		since := time.Now().Add(-2 * time.Second).UnixMilli()
		w.Do("HSET", testkit.Must(keyspace.New(keyspace.DefaultNamespace)).In(w.T).Notice(), notice.Label+"host-1/*", fmt.Sprintf("%d 0 0 drain a\nmove", since))
		compare("drain --list")
	})
}

// open lets commands reach the server of a world by a URL until shut. The time of the world stands still meanwhile.
func open(w *testkit.World) (url string, shut func()) {
	w.T.Helper()
	var option *rueidis.ClientOption
	client, err := w.Server.Client(func(o *rueidis.ClientOption) { option = o })
	require.NoError(w.T, err)
	client.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.T, err)
	var work sync.WaitGroup
	work.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := option.DialCtxFn(w.T.Context(), "", nil, nil)
			if err != nil {
				return
			}
			for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
				work.Go(func() {
					_, _ = io.Copy(pair[1], pair[0])
					_ = pair[1].Close()
				})
			}
		}
	})
	return "redis://" + listener.Addr().String() + "?client_cache=0", func() {
		_ = listener.Close()
		work.Wait()
		w.Advance(2 * time.Second) // rueidis has a goroutine that sleeps
	}
}
