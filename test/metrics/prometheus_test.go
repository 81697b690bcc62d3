package metrics

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	berthprom "github.com/berth-go/berth/contrib/prometheus"
	"github.com/berth-go/berth/internal/testkit/lag"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/observe/measure"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// prom is a Prometheus.
type prom struct {
	t    *testing.T
	base string
}

// ends interrupts a process at the end of the test, and waits for it.
func ends(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
}

// scraping is a Prometheus that scrapes an exporter, whose user only reads, and this process, which uses all kinds.
func scraping(t *testing.T) *prom {
	t.Helper()
	lag.Relies(t, time.Second) // of holds, whose leases are of 3 s, and of readings
	path := program(t, "prometheus")
	server := harness.Start(t)
	registry := prometheus.NewRegistry()
	observer, err := berthprom.New(registry, measure.Config{NameClass: measure.Collapse})
	require.NoError(t, err)
	application := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(application.Close)
	works(t, server, observer)
	berth, err := harness.Command()
	require.NoError(t, err)
	drain := exec.Command(berth, "drain", "--label", "gone/*")
	drain.Env = append(os.Environ(), "BERTH_REDIS="+server.Addr)
	require.NoError(t, drain.Run())
	server.ReadingUser(t, "berth", "+info")
	exporter := exporter(t, "redis://reading@"+server.Addr)

	folder := t.TempDir()
	rulesAt, err := filepath.Abs(rules)
	require.NoError(t, err)
	config := fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - {job_name: berth-exporter, static_configs: [{targets: [%q]}]}
  - {job_name: application, static_configs: [{targets: [%q]}]}
`, rulesAt, exporter, application.Listener.Addr().String())
	file := filepath.Join(folder, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	addr := harness.FreeAddr(t)
	cmd := exec.Command(path, "--config.file", file, "--storage.tsdb.path", filepath.Join(folder, "data"), "--web.listen-address", addr)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	require.NoError(t, cmd.Start())
	ends(t, cmd)
	p := &prom{t, "http://" + addr}
	require.Eventually(t, func() bool {
		return p.get("/api/v1/status/runtimeinfo", nil, new(any)) == nil
	}, patience, 100*time.Millisecond)
	return p
}

// exporter is the address of a berth exporter, whose user only reads.
func exporter(t *testing.T, server string) string {
	t.Helper()
	berth, err := harness.Command()
	require.NoError(t, err)
	cmd := exec.Command(berth, "exporter", "--listen", "127.0.0.1:0", "--every", "1s", "--timeout", "1m")
	cmd.Env = append(os.Environ(), "BERTH_REDIS="+server, "BERTH_REDIS_PASSWORD=secret")
	errs, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ends(t, cmd)
	line, err := bufio.NewReader(errs).ReadString('\n')
	require.NoError(t, err)
	at := regexp.MustCompile(`http://(127\.0\.0\.1:\d+)/`).FindStringSubmatch(line)
	require.NotNil(t, at, line)
	return at[1]
}

// works uses a semaphore, again and again, a lock that is held and waited for, and a pool, until the test ends. A run has
// succeeded.
func works(t *testing.T, server *harness.Server, observer observe.Observer) {
	t.Helper()
	redis := server.Client(t, func(o *rueidis.ClientOption) { o.ConnWriteTimeout = 3 * time.Second })
	n, err := node.New(redis, node.Config{Lease: 3 * time.Second, Observer: observer}) // heartbeats come soon
	require.NoError(t, err)
	const long = time.Minute // and what is to last is not lost by a pause of the machine
	locks := qlock.New(n, qlock.Config{Lease: long})
	pool := allocator.New(n, "proxies", allocator.Config[string]{Defaults: allocator.AllocateOptions{Lease: long}})
	job, sem := once.New(n, "digest", once.Config{Every: 24 * time.Hour}), semaphore.New(n, "gpu:42", 1, semaphore.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		working.Wait()
		closes(n)
	})
	_, err = locks.Lock(ctx, "nightly:1", nil)
	require.NoError(t, err)
	working.Go(func() { _, _ = locks.Lock(ctx, "nightly:1", nil) })
	_, err = pool.Add(ctx, []string{"a", "b", "c"}, nil)
	require.NoError(t, err)
	_, err = pool.Allocate(ctx, nil)
	require.NoError(t, err)
	_, err = job.Do(ctx, func(context.Context, *once.Run) error { return nil })
	require.NoError(t, err)
	for range 2 {
		working.Go(func() {
			for ctx.Err() == nil {
				_ = sem.Do(ctx, nil, func(context.Context) error { <-time.After(25 * time.Millisecond); return nil })
			}
		})
	}
}

// get asks Prometheus, and reads what it answers.
func (p *prom) get(path string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+path+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// values are those of the series that a query returns now, and what was answered.
func (p *prom) values(query string) (values []float64, answer string) {
	var read struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	err := p.get("/api/v1/query", url.Values{"query": {query}}, &read)
	for _, series := range read.Data.Result {
		text, _ := series.Value[1].(string)
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			values = append(values, v)
		}
	}
	return values, fmt.Sprint(read, err)
}

// rulesAreWell waits until Prometheus has evaluated each rule, and requires that it could.
func (p *prom) rulesAreWell() {
	p.t.Helper()
	var seen, bad []string
	require.Eventually(p.t, func() bool {
		var read struct {
			Data struct {
				Groups []struct {
					Rules []struct{ Name, Health, LastError string }
				}
			}
		}
		seen, bad = nil, nil
		err := p.get("/api/v1/rules", nil, &read)
		for _, group := range read.Data.Groups {
			for _, rule := range group.Rules {
				if seen = append(seen, rule.Name); rule.Health != "ok" {
					bad = append(bad, rule.Name+": "+rule.Health+" "+rule.LastError)
				}
			}
		}
		return err == nil && len(seen) > 0 && len(bad) == 0
	}, patience, 500*time.Millisecond, "%v", &bad)
}
