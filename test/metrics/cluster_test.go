package metrics

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/lag"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/test/harness"
)

// TestTheExporterOfACluster has names on all servers, of which one dies.
func TestTheExporterOfACluster(t *testing.T) {
	t.Parallel()
	lag.Relies(t, testkit.Safe/3)
	const names = 60
	held := fmt.Sprintf(`^berth_names_held\{name_class="order:\*",primitive="lock"\} %d$`, names)
	d := harness.Cluster(t)
	servers := d.Servers()
	users := func() {
		for _, server := range servers {
			server.ReadingUser(t, "berth", "+info", "+cluster|slots", "+cluster|shards", "+asking")
		}
	}
	users()
	n, err := node.New(d.Client(t), node.Config{Lease: time.Hour})
	require.NoError(t, err)
	locks := qlock.New(n, qlock.Config{Lease: time.Hour})
	t.Cleanup(func() { closes(n) })
	for i := range names {
		_, err := locks.Lock(t.Context(), fmt.Sprintf("order:%d", i), nil)
		require.NoError(t, err)
	}
	for _, asked := range servers[:2] { // a replica is named only when its progress is known; the exporter would not meet it
		client := asked.Client(t)
		require.Eventually(t, func() bool {
			slots, err := client.Do(t.Context(), client.B().ClusterSlots().Build()).ToAny()
			return err == nil && !slices.ContainsFunc(servers, func(s *harness.Server) bool {
				_, port, _ := strings.Cut(s.Addr, ":")
				return !strings.Contains(fmt.Sprint(slots), " "+port+" ")
			})
		}, patience, 100*time.Millisecond, "all servers are named")
	}
	told := "http://" + exporter(t, "redis://reading@"+servers[0].Addr+"?addr="+servers[1].Addr) + "/metrics"
	has := func(pattern string, times int) {
		t.Helper()
		var seen string
		wanted := regexp.MustCompile(`(?m)` + pattern)
		require.Eventually(t, func() bool {
			seen = read(t, told)
			return len(wanted.FindAllString(seen, -1)) == times
		}, patience, 500*time.Millisecond, "%s is not there %d times:\n%s", pattern, times, &seen)
	}
	masters := len(d.Masters(t))
	has(`^berth_up 1$`, 1)
	has(`^berth_exporter_complete 1$`, 1)
	has(held, 1)
	has(`^berth_server_up\{.*\} 1$`, len(servers))
	has(`^berth_server_info\{role="primary".*\} 1$`, masters)
	has(`^berth_server_memory_used_bytes\{`, len(servers))

	d.KillMaster(t, "berth:lock:{order:1}:state")
	has(`^berth_up 1$`, 1)
	has(`^berth_server_up\{.*\} 1$`, len(servers)-1) // the dead one is told as silent, or the Cluster does not name it any more
	has(`^berth_server_info\{role="primary".*\} 1$`, masters)
	d.Rejoin(t)
	users() // what was killed has forgotten them
	has(held, 1)
	require.NotContains(t, strings.Join(regexp.MustCompile(`name_class="[^"]*"`).FindAllString(read(t, told), -1), " "), "other")
}

// TestAnExporterThatMayNotAskHowTheServerIsSaysSo has the user that only reads, without +info: nobody would hear of a full
// server.
func TestAnExporterThatMayNotAskHowTheServerIsSaysSo(t *testing.T) {
	t.Parallel()
	server := harness.Start(t)
	server.ReadingUser(t, "berth")
	told := read(t, "http://"+exporter(t, "redis://reading@"+server.Addr)+"/metrics")
	require.Contains(t, told, "\nberth_up 1\n")
	require.Contains(t, told, "\nberth_exporter_problems 1\n")
	require.NotContains(t, told, "\nberth_server_full{")
}

// closes gives back what a node has.
func closes(n *node.Node) {
	within, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = n.Close(within)
}

func read(t *testing.T, address string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(text)
}
