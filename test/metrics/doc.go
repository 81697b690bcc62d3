// Package metrics holds the tests of what is in deploy: the rules, by promtool, and the dashboard, by a Prometheus that scrapes
// an exporter and a process on a real server. Both programs are Debian's; without them the tests are skipped, unless
// BERTH_TEST_PROMETHEUS is set to required.
package metrics
