package exporter

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

var (
	byName   = []string{"primitive", "name_class"}
	byClass  = []string{"name_class"}
	byServer = []string{"server"}
)

func metric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("berth_"+name, help, labels, nil)
}

// The metrics, in the order of docs/metrics.md.
var (
	up = metric("up", "1 if a server answered the last reading, be it with a refusal; 0 if none did: then nothing else of it is told.")

	serverUp     = metric("server_up", "1 if the server answered the last reading.", byServer...)
	serverInfo   = metric("server_info", "Always 1. The labels say what the server is.", "server", "software", "version", "role")
	serverUsed   = metric("server_memory_used_bytes", "Memory that the server uses.", byServer...)
	serverMost   = metric("server_memory_max_bytes", "Memory that the server may use; 0 for no limit.", byServer...)
	serverFull   = metric("server_full", "1 if the server is full and refuses what grows: new claims.", byServer...)
	serverRefuse = metric("server_refuses_writes", "1 if the server refuses all writes: too few replicas, or a disk that cannot be written.", byServer...)

	names       = metric("names", "Names in use: that somebody holds or waits for, that are paused, pools with resources, and names of which runs are kept.", byName...)
	namesFull   = metric("names_full", "Names that have nothing free: a semaphore at its capacity, a held lock, a pool that has run dry.", byName...)
	namesStuck  = metric("names_stuck", "Names that stay as they are until somebody mends them, by why they do.", "primitive", "name_class", "reason")
	capacity    = metric("names_capacity", "Capacity of all names of the class; of a pool its resources.", byName...)
	held        = metric("names_held", "How much of the capacity is held; of a pool how many resources are leased.", byName...)
	waiting     = metric("names_waiting", "Claims that wait.", byName...)
	oldestWait  = metric("names_oldest_wait_seconds", "How long the claim has waited that has waited longest.", byName...)
	longestHold = metric("names_longest_hold_seconds", "How long the hold has lasted that has lasted longest, of those that were read.", byName...)
	resources   = metric("names_resources", "Resources of pools by their state: free, leased or resting.", "name_class", "state")

	paused    = metric("paused", "Names of which nothing is granted, because an operator paused them.", byName...)
	pausedAge = metric("paused_age_seconds", "How long ago the pause was set that was set the longest ago.", byName...)
	cycles    = metric("cycles", "Cycles of claims that wait for each other: certain if each owner does one thing after another, possible otherwise.", "certain")

	onceSuccess = metric("once_last_success_timestamp_seconds", "When the newest successful run of a name ended, of the name of the class for which that is longest ago.", byClass...)
	onceDue     = metric("once_due_timestamp_seconds", "By when a run was or is to succeed, of the name of the class for which that is first: at the end of the period after that of its last success.", byClass...)
	oncePeriod  = metric("once_period_seconds", "The longest period of the class.", byClass...)
	onceFailed  = metric("once_failed", "Names whose newest run has failed.", byClass...)

	drainCount = metric("drains", "Drains that are in force.")
	drainAge   = metric("drain_age_seconds", "How long ago the drain was called that was called the longest ago.", "target")
	drainLeft  = metric("drain_left_seconds", "How long the drain lasts yet that lasts longest, of those that end by themselves.", "target")

	swarmNodes = metric("swarm_nodes", "Nodes of the swarm: alive; zombie, which have missed their limit; condemned, in the last 24 h.", "state")

	age        = metric("exporter_age_seconds", "How old the figures are, but for those of a walk.")
	walkAge    = metric("exporter_walk_age_seconds", "How old the figures of names, but for waits, may be: since their walk over all names began.")
	complete   = metric("exporter_complete", "1 if all names were read at once: all figures are as old as berth_exporter_age_seconds, and exact.")
	left       = metric("exporter_waits_left_out", "1 if more names are waited for than could be read: there are more waits than told.")
	cyclesAge  = metric("exporter_cycles_age_seconds", "How long ago the search for cycles began that is told.")
	cyclesPart = metric("exporter_cycles_in_part", "1 if it could not look at all that waits: there may be more cycles.")
	part       = metric("exporter_names_in_part", "Names of which not all holds were read: one may have lasted longer than told.")
	problems   = metric("exporter_problems", "What the last reading, and the walk that is told, could not read. The log says why.")
	took       = metric("exporter_reading_seconds", "How long the last reading took.")
	readings   = metric("exporter_readings_total", "Readings by outcome: answered, or silent.", "outcome")
)

// Describe describes nothing: which metrics there are depends on what is read.
func (*exporter) Describe(chan<- *prometheus.Desc) {}

// Collect tells a reading, which it makes if the last one is too old.
func (e *exporter) Collect(to chan<- prometheus.Metric) {
	t := e.look()
	o := out{to}
	o.tell(readings, t.readings-t.silent, "answered")
	o.tell(readings, t.silent, "silent")
	r := t.reading
	o.tell(up, r != nil && r.up())
	if r == nil {
		return
	}
	o.tell(age, time.Since(r.began))
	o.tell(took, r.took)
	o.tell(problems, len(r.problems))
	for i := range r.servers {
		o.server(&r.servers[i])
	}
	if s := r.swarm; s != nil {
		o.tell(swarmNodes, s.Alive, "alive")
		o.tell(swarmNodes, s.Zombie, "zombie")
		o.tell(swarmNodes, s.Condemned, "condemned")
	}
	if d := r.drains; d != nil {
		o.tell(drainCount, d.count)
		for target, age := range d.age {
			o.tell(drainAge, age, target)
		}
		for target, left := range d.left {
			o.tell(drainLeft, left, target)
		}
	}
	if r.up() {
		o.tell(complete, r.whole)
		o.names(r)
		o.stuck(r)
		o.cycles(r.cycles)
	}
}

// out is where metrics go.
type out struct{ to chan<- prometheus.Metric }

// tell tells a number, 1 of what is so, a length or a moment in seconds; and nothing of a moment that is none.
func (o out) tell(of *prometheus.Desc, what any, labels ...string) {
	v, sort := 0.0, prometheus.GaugeValue
	switch what := what.(type) {
	case int:
		v = float64(what)
	case int64:
		v = float64(what)
	case bool:
		if what {
			v = 1
		}
	case time.Duration:
		v = what.Seconds()
	case time.Time:
		if what.IsZero() {
			return
		}
		v = float64(what.UnixMilli()) / 1000
	}
	if of == readings {
		sort = prometheus.CounterValue
	}
	for i := range labels {
		labels[i] = strings.ToValidUTF8(labels[i], string(utf8.RuneError))
	}
	o.to <- prometheus.MustNewConstMetric(of, sort, v, labels...)
}

func (o out) server(s *server) {
	o.tell(serverUp, s.answered(), s.address)
	if s.err != nil {
		return
	}
	role := "primary"
	if s.Replica {
		role = "replica"
	}
	o.tell(serverInfo, 1, s.address, s.Software, s.Version, role)
	if s.Server == nil { // the user may not ask
		return
	}
	o.tell(serverUsed, s.Used, s.address)
	o.tell(serverMost, s.Most, s.address)
	o.tell(serverFull, s.Server.Full, s.address)
	o.tell(serverRefuse, s.Server.Refuses, s.address)
}

// names tells of names. Of a class that the walk has met and nobody waits for, nobody waits.
func (o out) names(r *reading) {
	if r.names != nil {
		o.tell(walkAge, time.Since(r.names.began))
		o.tell(part, r.names.part)
		for of, f := range r.names.of {
			o.uses(of, f)
			if r.waits != nil && r.waits[of] == nil {
				o.waits(of, &figures{})
			}
		}
	}
	if r.waits != nil {
		o.tell(left, r.left)
		for of, f := range r.waits {
			o.waits(of, f)
		}
	}
}

func (o out) uses(of class, f *figures) {
	labels := []string{string(of.kind), of.name}
	o.tell(names, f.names, labels...)
	if of.kind == keyspace.Once {
		o.tell(onceFailed, f.failed, of.name)
		o.tell(onceSuccess, f.success, of.name)
		o.tell(onceDue, f.due, of.name)
		if f.period > 0 {
			o.tell(oncePeriod, f.period, of.name)
		}
		return
	}
	o.tell(paused, f.paused, labels...)
	if f.paused == 0 || f.longestPause > 0 { // else it is not known
		o.tell(pausedAge, f.longestPause, labels...)
	}
	o.tell(namesFull, f.full, labels...)
	o.tell(capacity, f.capacity, labels...)
	o.tell(held, f.held, labels...)
	o.tell(longestHold, f.longestHold, labels...)
	if of.kind == keyspace.Pool {
		o.tell(resources, f.free, of.name, "free")
		o.tell(resources, f.held, of.name, "leased")
		o.tell(resources, f.resting, of.name, "resting")
	}
}

func (o out) waits(of class, f *figures) {
	if of.kind == keyspace.Once {
		return // claims wait for the lock of the name
	}
	o.tell(waiting, f.waiting, string(of.kind), of.name)
	o.tell(oldestWait, f.oldestWait, string(of.kind), of.name)
}

// reasons are why a name may be stuck; the last ones are those of any kind.
var (
	reasons = append([]inspect.Code{inspect.InCycle, inspect.DeadHold, inspect.LeftBehind, inspect.TooHeavy, inspect.NothingBack}, unread...)
	unread  = []inspect.Code{inspect.Damaged, inspect.Foreign, inspect.Incompatible}
)

// stuck tells of names that are stuck, and that none is only where that is known.
func (o out) stuck(r *reading) {
	all := map[class]map[string]int{}
	add := func(of class, found map[string]int) {
		if all[of] == nil {
			all[of] = map[string]int{}
			for _, why := range reasons {
				if looked := why != inspect.InCycle || r.cycles != nil; looked && r.names != nil && r.waits != nil {
					all[of][string(why)] = 0
				}
			}
		}
		for why, n := range found {
			all[of][why] += n
		}
	}
	if r.names != nil {
		for of, f := range r.names.of {
			add(of, f.stuck)
		}
	}
	for of, f := range r.waits {
		add(of, f.waited)
	}
	for of, found := range all {
		for why, n := range found {
			if of.kind != keyspace.Once || slices.Contains(unread, inspect.Code(why)) {
				o.tell(namesStuck, n, string(of.kind), of.name, why)
			}
		}
	}
}

func (o out) cycles(found *inspect.Cycles) {
	if found == nil {
		return
	}
	certain := 0
	for i := range found.Cycles {
		if found.Cycles[i].Certain {
			certain++
		}
	}
	o.tell(cycles, certain, "true")
	o.tell(cycles, len(found.Cycles)-certain, "false")
	o.tell(cyclesAge, time.Since(found.At))
	o.tell(cyclesPart, found.Partial || len(found.Problems) > 0)
}
