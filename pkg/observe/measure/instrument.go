package measure

import "slices"

// Type says how an instrument's value changes.
type Type uint8

const (
	// Counter only grows.
	Counter Type = iota + 1
	// Gauge grows and falls: an UpDownCounter of OpenTelemetry.
	Gauge
	// Histogram counts single values in buckets.
	Histogram
)

// Instrument is one metric.
type Instrument struct {
	// Name is the name in the form of OpenTelemetry: "berth.wait_time".
	Name string
	// Help describes the instrument in one sentence.
	Help string
	// Unit is a unit of UCUM: "s" for a histogram, else the counted thing in braces, such as
	// "{claim}".
	Unit string
	// Type is how the value changes.
	Type Type
	// Labels are the labels of each series, in order. "primitive" is as in observe.Event.
	// "name_class" is the class, empty for events about no name. "outcome" says how an acquire, a
	// hold or a heartbeat ended. "call" is the call that was given up: "acquire", "release" or
	// "cleanup". "kind" is the kind of an event. Each label has few values: short lists, and at
	// most Config.MaxClasses classes and [Other].
	Labels []string
	// Buckets are the upper bounds of a histogram's buckets, in seconds.
	Buckets []float64
}

// The positions in the slice of Instruments.
const (
	acquires = iota
	waitTime
	waiting
	held
	holdTime
	holdEnds
	repeatedCalls
	unansweredCalls
	heartbeats
	heartbeatDelay
	events
)

// Instruments returns all instruments, in the order of the package comment, in a new slice.
func Instruments() []Instrument {
	spans := []float64{0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1800, 3600}
	delays := []float64{0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
	return []Instrument{
		acquires: {
			Name: "berth.acquires", Unit: "{acquire}", Type: Counter, Labels: labels("outcome"),
			Help: "Acquires that have ended.",
		},
		waitTime: {
			Name: "berth.wait_time", Unit: "s", Type: Histogram, Labels: labels(), Buckets: spans,
			Help: "How long acquires that were granted took; re-entries, which do not wait, are left out.",
		},
		waiting: {
			Name: "berth.waiting", Unit: "{claim}", Type: Gauge, Labels: labels(),
			Help: "Claims of this process that wait in line now.",
		},
		held: {
			Name: "berth.held", Unit: "{hold}", Type: Gauge, Labels: labels(),
			Help: "Holds of this process that last now, whatever their weight.",
		},
		holdTime: {
			Name: "berth.hold_time", Unit: "s", Type: Histogram, Labels: labels(), Buckets: slices.Clone(spans),
			Help: "How long holds that have ended lasted.",
		},
		holdEnds: {
			Name: "berth.hold_ends", Unit: "{hold}", Type: Counter, Labels: labels("outcome"),
			Help: "Holds that have ended.",
		},
		repeatedCalls: {
			Name: "berth.repeated_calls", Unit: "{call}", Type: Counter, Labels: labels(),
			Help: "Attempts of calls that were not answered, or did not run, and were repeated.",
		},
		unansweredCalls: {
			Name: "berth.unanswered_calls", Unit: "{call}", Type: Counter, Labels: labels("call"),
			Help: "Calls that were given up without an answer.",
		},
		heartbeats: {
			Name: "berth.heartbeats", Unit: "{heartbeat}", Type: Counter, Labels: []string{"primitive", "outcome"},
			Help: "Heartbeats of claims that were answered, or were not in time.",
		},
		heartbeatDelay: {
			Name: "berth.heartbeat_delay", Unit: "s", Type: Histogram, Labels: []string{"primitive"}, Buckets: delays,
			Help: "How long after their time heartbeats were sent; those that are sent together count once.",
		},
		events: {
			Name: "berth.events", Unit: "{event}", Type: Counter, Labels: labels("kind"),
			Help: "Events that no other metric counts.",
		},
	}
}

// labels are the labels of an instrument with classes of names.
func labels(more ...string) []string { return append([]string{"primitive", "name_class"}, more...) }
