package metrics

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// panels are those of the dashboard: their queries, by their titles.
func panels(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(dashboard)
	require.NoError(t, err)
	var read struct {
		Panels []struct {
			Type, Title, Description string
			Targets                  []struct{ Expr, LegendFormat string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &read))
	found := map[string][]string{}
	for _, p := range read.Panels {
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.Description, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		require.True(t, strings.HasSuffix(p.Title, "?"), "%q is no question", p.Title)
		require.NotContains(t, found, p.Title)
		for _, target := range p.Targets {
			require.NotEmpty(t, target.LegendFormat, p.Title)
			found[p.Title] = append(found[p.Title], target.Expr)
		}
	}
	return found
}

// variables are those of Grafana, with all that there is.
var variables = strings.NewReplacer("$__rate_interval", "30s", "$primitive", ".*", "$class", ".*")

func TestEachPanelsQueryReturnsSeriesOfARealRun(t *testing.T) {
	t.Parallel()
	all := panels(t)
	p := scraping(t)
	open := 0
	for title, queries := range all {
		for _, query := range queries {
			query = variables.Replace(query)
			require.NotContains(t, query, "$", title)
			open++
			var last string
			require.Eventually(t, func() bool {
				var values []float64
				values, last = p.values(query)
				return slices.ContainsFunc(values, func(v float64) bool { return !math.IsNaN(v) })
			}, patience, 500*time.Millisecond, "%s: no series of %s: %s", title, query, &last)
		}
	}
	t.Logf("%d panels, %d queries", len(all), open)
	p.rulesAreWell()
	p.showsWhatIs()
}

// showsWhatIs compares what the exporter told Prometheus with what there is.
func (p *prom) showsWhatIs() {
	p.t.Helper()
	for query, want := range map[string]float64{
		`berth_up`: 1,
		`berth_names_waiting{primitive="lock",name_class="nightly:*"}`:           1,
		`berth_names_held{primitive="lock",name_class="nightly:*"}`:              1,
		`berth_names_resources{name_class="proxies",state="leased"}`:             1,
		`berth_names_resources{name_class="proxies",state="free"}`:               2,
		`berth_exporter_problems`:                                                0,
		`berth_exporter_complete`:                                                1,
		`count(berth_server_info{software="redis",role="primary",version!=""})`:  1,
		`count(berth_server_memory_used_bytes > 0)`:                              1,
		`count(berth_names_oldest_wait_seconds{name_class="nightly:*"} > 0)`:     1,
		`sum(berth_held{primitive="lock",name_class="nightly:*"})`:               1,
		`sum(berth_waiting{primitive="lock",name_class="nightly:*"})`:            1,
		`count(berth:names_held:share)`:                                          3,
		`berth_names{primitive="once",name_class="digest"}`:                      1,
		`berth_once_failed{name_class="digest"}`:                                 0,
		`berth_once_period_seconds{name_class="digest"}`:                         86400,
		`count(time() - berth_once_last_success_timestamp_seconds < 86400)`:      1,
		`count(berth_once_due_timestamp_seconds > time())`:                       1,
		`count(berth_exporter_age_seconds < 60)`:                                 1,
		`count(ALERTS{alertname=~"Berth(Server|Fig|NotWatched|Unread|Run).*"})`:  0,
		`count(berth_exporter_readings_total{outcome="silent"} == 0)`:            1,
		`count(berth_names_capacity{primitive="pool",name_class="proxies"} ==3)`: 1,
	} {
		var values []float64
		require.Eventually(p.t, func() bool {
			values, _ = p.values(query)
			if strings.Contains(query, "ALERTS") {
				return len(values) == 0
			}
			return len(values) == 1 && math.Abs(values[0]-want) < 1e-9
		}, patience, 500*time.Millisecond, "%s is not %v: %v", query, want, &values)
	}
}

var metricName = regexp.MustCompile(`\bberth[_:][a-z0-9_:]+`)

// TestEachMetricThatIsNamedIsThere looks for metrics that the rules, the dashboard and the page name, and that nobody
// tells: what is told stands in the source, and in a comment that has a test of its own.
func TestEachMetricThatIsNamedIsThere(t *testing.T) {
	t.Parallel()
	known := " berth_console_ " // an external label
	for file, told := range map[string]string{
		"../../cmd/berth/internal/exporter/collector.go": `= metric\("([a-z_]+)"`,
		"../../contrib/prometheus/doc.go":                `(?m)^//\t(berth_[a-z_]+)`,
		rules:                                            `- record: (berth:\S+)`,
	} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		names := regexp.MustCompile(told).FindAllSubmatch(text, -1)
		require.NotEmpty(t, names, file)
		for _, name := range names {
			name := string(name[1])
			if !strings.HasPrefix(name, "berth") { // the collector adds that
				name = "berth_" + name
			}
			known += " " + name + "_ "
		}
	}
	for _, file := range []string{rules, rulesTest, dashboard, "../../docs/metrics.md"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range metricName.FindAllString(string(text), -1) {
			name = strings.TrimSuffix(strings.TrimRight(name, "_:"), "_bucket")
			require.Contains(t, known, " "+name+"_", "%s names %s", file, name)
		}
	}
}

func TestPromtoolAcceptsTheRulesAndTheirTests(t *testing.T) {
	t.Parallel()
	for what, file := range map[string]string{"check": rules, "test": rulesTest} {
		out, err := exec.CommandContext(t.Context(), program(t, "promtool"), what, "rules", file).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

var ruleLine = regexp.MustCompile(`(?m)^ +- (alert|record): (\S+)\n +expr: (>-\n(?: {10,}.*\n)+|.*\n)`)

// ofDays are the lines of tests that look further than 1 000 minutes ahead.
var ofDays = regexp.MustCompile(`(?m)^ +- \{eval_time: \d{4,}m, .*\n`)

// TestEachRuleIsTestedBothWays has all rules never fire, and then always: a test of each must notice. No rule here is made of
// another, so that what a test says is of the rule that it names.
func TestEachRuleIsTestedBothWays(t *testing.T) {
	t.Parallel()
	tool := program(t, "promtool")
	text, err := os.ReadFile(rules)
	require.NoError(t, err)
	tests, err := os.ReadFile(rulesTest)
	require.NoError(t, err)
	tests = ofDays.ReplaceAll(tests, nil) // they cost more than all others, and fewer tests notice no more
	all := ruleLine.FindAllStringSubmatch(string(text), -1)
	require.Len(t, all, strings.Count(string(text), " expr: "))
	for _, expression := range []string{"vector(1) > 1", "vector(1)"} {
		folder := t.TempDir()
		broken := ruleLine.ReplaceAllString(string(text), "      - $1: $2\n        expr: "+expression+"\n")
		require.NoError(t, os.WriteFile(folder+"/rules.yml", []byte(broken), 0o600))
		require.NoError(t, os.WriteFile(folder+"/rules_test.yml", tests, 0o600))
		out, err := exec.CommandContext(t.Context(), tool, "test", "rules", folder+"/rules_test.yml").CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, "nobody notices that all rules are %s: %s", expression, out)
		require.NotContains(t, string(out), "yaml:", "%s", broken)
		for _, rule := range all {
			noticed := map[string]string{"alert": `alertname: %s, time: `, "record": `expr: "%s", time: `}[rule[1]]
			require.Contains(t, string(out), fmt.Sprintf(noticed, rule[2]), "nobody notices that %s is %s", rule[2], expression)
		}
	}
}
