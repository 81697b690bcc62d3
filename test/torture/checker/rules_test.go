package checker

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/torture/history"
)

// epoch is the machine's wall clock at 0 of a story, in us.
const epoch = 1_700_000_000_000_000

// story reads a history from text, a line for an event or a fault:
//
//	10 w1 ok acquire#1 fence=9 name=sem/x
//	11..14 w1 ok acquire#2 queued=12 fence=13 alive=20,30
//	fault flush 20 30 amnesia
//	fill 25 29
//
// The second is a call, with when it is invoked, stands in line and is believed in; what only an outcome says is of none
// of these.
// Times are in ms. #n is the Op of an operation; of#n is what it is about, which for
// events that are no operations is the claim's acquire. A fence is the ms of its grant.
// Claims are called by process and number. The name is lock/x if none is given.
func story(t *testing.T, text string) *history.Run {
	t.Helper()
	run := &history.Run{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "fault":
			run.Faults = append(run.Faults, faultOf(t, words))
		case words[0] == "fill":
			run.Fills = append(run.Fills, history.Fill{
				From: int64(number(t, words[1]) * 1e6), To: int64(number(t, words[2]) * 1e6),
			})
		default:
			for _, words := range eventsOf(words) {
				run.Events = append(run.Events, eventOf(t, words))
			}
		}
	}
	sortEvents(run)
	return run
}

// eventsOf are the words of the events of a line.
func eventsOf(words []string) (events [][]string) {
	from, to, call := strings.Cut(words[0], "..")
	if !call {
		return [][]string{words}
	}
	do, op, _ := strings.Cut(words[3], "#")
	invoke, outcome := []string{from, words[1], "invoke"}, []string{to, words[1]}
	of := func(at, kind string) []string { return []string{at, words[1], kind, "of#" + op} }
	queued, alive, about := of("", "queued"), "", []string(nil)
	grants := slices.Contains([]string{history.Acquire, history.Try, history.Reenter, history.Look}, do)
	for _, w := range words[2:] {
		key, value, set := strings.Cut(w, "=")
		switch {
		case set && key == "queued":
			queued[0] = value
			continue
		case set && key == "alive":
			alive = value
			continue
		case w == words[2]:
		case set && slices.Contains([]string{"fence", "is", "reason", "err", "left"}, key):
		case set && grants && (key == "resource" || key == "claim"):
		default:
			invoke = append(invoke, w)
		}
		outcome = append(outcome, w)
		if key == "name" || key == "node" {
			queued = append(queued, w)
		}
		if key == "name" || key == "claim" {
			about = append(about, w)
		}
	}
	events = [][]string{invoke, outcome}
	if queued[0] != "" {
		events = [][]string{invoke, queued, outcome}
	}
	for at := range strings.FieldsFuncSeq(alive, func(r rune) bool { return r == ',' }) {
		events = append(events, slices.Concat(of(at, "alive"), about))
	}
	return events
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return n
}

func faultOf(t *testing.T, words []string) history.Fault {
	t.Helper()
	from, to := int64(number(t, words[2])*1000), int64(number(t, words[3])*1000)
	f := history.Fault{Name: words[1], From: from * 1000, To: to * 1000, Real: epoch + from, RealEnd: epoch + to}
	for _, w := range words[4:] {
		if key, value, _ := strings.Cut(w, "="); !set(t, &f, key, value) {
			f.Process = w
		}
	}
	return f
}

func eventOf(t *testing.T, words []string) history.Event {
	t.Helper()
	at := int64(number(t, words[0]) * 1000)
	e := history.Event{
		At: at * 1000, Real: epoch + at, Process: words[1], Kind: history.Kind(words[2]),
		Primitive: "lock", Name: "x",
	}
	for _, w := range words[3:] {
		key, value, assigns := strings.Cut(w, "=")
		do, op, numbered := strings.Cut(w, "#")
		switch {
		case !assigns && numbered && do == "of":
			e.Hold = int64(number(t, op))
		case !assigns && numbered:
			e.Do, e.Op = do, int64(number(t, op))
		case key == "name":
			e.Primitive, e.Name, _ = strings.Cut(value, "/")
		default:
			require.True(t, set(t, &e, key, value) || w == "endless", w)
		}
	}
	acquires := e.Do == history.Acquire || e.Do == history.Try || e.Do == history.Reenter
	if acquires && e.Lease == 0 && !slices.Contains(words, "endless") {
		e.Lease = 1000
	}
	switch {
	case e.Claim != "":
	case e.Hold != 0:
		e.Claim = fmt.Sprintf("%s-%d", e.Process, e.Hold)
	case acquires && e.Kind == history.OK:
		e.Claim = fmt.Sprintf("%s-%d", e.Process, e.Op)
	}
	if e.Primitive == "sem" && acquires {
		e.Capacity = cmp.Or(e.Capacity, 2)
	}
	return e
}

// set sets a field of an event or a fault, and reports whether there is one of that name.
func set(t *testing.T, of any, key, value string) bool {
	t.Helper()
	field := reflect.ValueOf(of).Elem().FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, key) })
	switch {
	case !field.IsValid():
		return false
	case field.Kind() == reflect.Bool:
		field.SetBool(true)
	case field.Kind() == reflect.String:
		field.SetString(value)
	case field.Kind() == reflect.Slice:
		field.Set(reflect.ValueOf(strings.Split(value, ",")))
	case key == "fence" || key == "real":
		field.SetInt(epoch + int64(number(t, value)*1000))
	case key == "lost":
		field.SetInt(int64(number(t, value) * 1e6))
	default:
		field.SetInt(int64(number(t, value)))
	}
	return true
}

// condemnedStory has w1 believe for some milliseconds in what w2 was granted.
const condemnedStory = `
	1000..1002 w1 ok acquire#1 fence=1001 claim=w1n.1 alive=1010
	1003..1009 w2 ok acquire#1 fence=1005 claim=w2n.1 alive=1009.5`

// heldStory is a lock that is believed in for more than a lease, anewStory one that is granted anew meanwhile.
const (
	heldStory = `
	0..2 w1 ok acquire#1 fence=1 alive=1100`
	anewStory = heldStory + `
	14..16 w2 ok acquire#1 fence=15 alive=1101`
)

// fallStory has a fence that is less than the one before.
const fallStory = `
	0..12 w1 ok acquire#1 fence=11
	20..22 w2 ok acquire#1 fence=10`

// each pair of stories differs in what decides.
func TestRules(t *testing.T) {
	given, woken := handOffStory(20), wakeStory(350, "")
	tell(t, []tale{
		{"one after the other", `
			0..2 w1 ok acquire#1 fence=1 alive=5
			6..8 w1 ok release#2 of#1
			1..8 w2 ok acquire#1 queued=3 fence=7 alive=9`, nil},
		{"believed in after the next grant, which nobody believed in", `
			0..2 w1 ok acquire#1 fence=1 alive=3,8
			1..9 w2 ok acquire#1 fence=7`, []string{Capacity}},
		{"the clock was behind at that grant", `
			0..2 w1 ok acquire#1 fence=1 alive=8
			1..9 w2 ok acquire#1 fence=7
			fault clock 1 20 behind`, nil},
		{"asked before the next grant, by a process that was stopped in between", `
			0..2 w1 ok acquire#1 fence=1
			6 w1 alive of#1 real=6.5
			1..5000 w2 ok acquire#1 fence=7`, nil},
		{"the clock was ahead: two at a time, by time alone", `
			0..2 w1 ok acquire#1 fence=1001 alive=8
			1..3 w2 ok acquire#1 fence=1003 alive=4
			5..6 w2 ok release#2 of#1`, []string{Capacity, Linearizable}},
		{"data was lost: the older holder may believe for its lease", `
			0..2 w1 ok acquire#1 fence=1 alive=900
			14..16 w2 ok acquire#1 fence=15 alive=901
			fault flush 10 12 amnesia`, nil},
		{"the clock was set, and the swarm has found the older holder's node dead", condemnedStory + `
			1011 w1 trouble detail=node_replaced former=w1n
			fault clock 900 990 amnesia`, nil},
		{"long after the clock was set", condemnedStory + `
			5011 w1 trouble detail=node_replaced former=w1n
			fault clock 900 990 amnesia`, []string{Capacity}},
		{"nobody has set the clock", condemnedStory + `
			1011 w1 trouble detail=node_replaced former=w1n`, []string{Capacity, Linearizable}},
		{"another node was found dead", condemnedStory + `
			1011 w1 trouble detail=node_replaced former=w1m
			fault clock 900 990 amnesia`, []string{Capacity}},
		{"data was lost long before the fault was healed: a lease from the loss", anewStory + "\nfault failover 10 3000 amnesia lost=12", []string{Capacity}},
		{"the same while data may still be lost", anewStory + "\nfault failover 10 3000 amnesia", nil},
		{"a look shows the hold as it is", `
			0..2 w1 ok acquire#1 name=pool/x fence=1 resource=a alive=1100
			5..6 w1 ok look#2 of#1 name=pool/x fence=1 resource=a`, nil},
		{"a look shows another fence, and a lease later the hold is still believed in", heldStory + "\n5..6 w1 ok look#2 of#1 fence=2", []string{Agreement}},
		{"the same, and less than a lease later it ends", `
			0..2 w1 ok acquire#1 fence=1 alive=900
			5..6 w1 ok look#2 of#1 fence=2
			901 w1 ended of#1 is=lost`, nil},
		{"a look shows another resource", `
			0..2 w1 ok acquire#1 name=pool/x fence=1 resource=a alive=1100
			5..6 w1 ok look#2 of#1 name=pool/x fence=1 resource=b`, []string{Agreement}},
		{"a look shows no such hold", heldStory + "\n5..6 w1 fail look#2 of#1", []string{Agreement}},
		{"the look was answered before data was lost", heldStory + "\n5..6 w1 fail look#2 of#1\nfault restore 7 9 amnesia", nil},
		{"the look was asked after the last was lost, before the fault was healed", heldStory + "\n25..26 w1 fail look#2 of#1\nfault failover 7 3000 amnesia lost=20", []string{Agreement}},
		{"nobody knows how long an extended hold lasts", heldStory + "\n3..4 w1 ok extend#3 of#1\n5..6 w1 fail look#2 of#1", nil},
		{"data was lost, and the older holder believes for more than its lease", anewStory + "\nfault flush 10 12 amnesia", []string{Capacity}},
		{"data was lost before both were granted", `
			20..22 w1 ok acquire#1 fence=21 alive=50
			24..26 w2 ok acquire#1 fence=25 alive=51
			fault flush 10 12 amnesia`, []string{Capacity}},
		{"data was lost after both were granted", `
			0..2 w1 ok acquire#1 fence=1 alive=8
			1..6 w2 ok acquire#1 fence=5 alive=9
			fault flush 40 42 amnesia`, []string{Capacity}}, // such rounds are not searched for an order
		{"weights that fit together", `
			0..2 w1 ok acquire#1 name=sem/s fence=1 alive=8
			3..5 w2 ok acquire#1 name=sem/s fence=4 alive=9`, nil},
		{"weights that do not", `
			0..2 w1 ok acquire#1 name=sem/s fence=1 alive=8
			3..5 w2 ok acquire#1 name=sem/s weight=2 fence=4 alive=9`, []string{Capacity, Linearizable}},
		{"two resources of a pool", `
			0..2 w1 ok acquire#1 name=pool/p fence=1 resource=a alive=8
			3..5 w2 ok acquire#1 name=pool/p fence=4 resource=b alive=9`, nil},
		{"one resource of a pool twice", `
			0..2 w1 ok acquire#1 name=pool/p fence=1 resource=a alive=8
			3..5 w2 ok acquire#1 name=pool/p fence=4 resource=a alive=9`, []string{Capacity, Linearizable}},
		{"a re-entry shares the fence and the place", `
			0..2 w1 ok acquire#1 fence=1 alive=6
			3..4 w1 ok reenter#2 fence=1 alive=5`, nil},
		{"a re-entry that lives when the lock has been granted anew", `
			0..2 w1 ok acquire#1 fence=1
			3..4 w1 ok reenter#2 fence=1 alive=20
			8..10 w2 ok acquire#1 fence=9 alive=21`, []string{Capacity, Linearizable}},

		{"a fence twice", `
			0..2 w1 ok acquire#1 fence=1
			1..3 w2 ok acquire#1 fence=1`, []string{Fence, Linearizable}},
		{"a hold that was resumed has its fence", `
			0..2 w1 ok acquire#1 fence=1 claim=c
			11..13 w2 ok acquire#1 fence=1 claim=c
			fault flush 900 901 amnesia`, nil},
		{"a fence that falls", fallStory, []string{Fence, Linearizable}},
		{"fences of waits that overlap come as they like", `
			0..12 w1 ok acquire#1 fence=11
			10..22 w2 ok acquire#1 fence=10`, nil},
		{"a fence that falls through a flush", fallStory + "\nfault flush 14 15 amnesia", []string{Fence}},
		{"a fence that was ahead of the clock falls through a flush", `
			0..12 w1 ok acquire#1 fence=5011
			20..22 w2 ok acquire#1 fence=21
			fault flush 14 15 amnesia`, nil},
		{"a fence falls through a flush while the clock is behind", `
			0..12 w1 ok acquire#1 fence=11
			20..22 w2 ok acquire#1 fence=2
			fault flush 14 15 amnesia
			fault clock 16 30 behind amnesia`, nil},

		{"who comes later is granted first", passedStory("acquire#1"), []string{Order}},
		{"who comes later is granted first, while the other's process had no answer", silentStory("w1"), nil},
		{"who comes later is granted first, while a third process had no answer", silentStory("w3"), []string{Order}},
		{"who asked before the other stood in line", `
			0..20 w1 ok acquire#1 queued=4 fence=19
			3..11 w2 ok acquire#1 fence=10`, nil},
		{"who has another priority", passedStory("acquire#1 priority=1"), nil},
		{"who has a lower priority", `
			0..20 w1 ok acquire#1 priority=1 queued=2 fence=19
			3..11 w2 ok acquire#1 fence=10`, []string{Order}},
		{"who came before a higher priority, and was granted after it stood in line", `
			3..20 w1 ok acquire#1 priority=1 queued=5 fence=19
			0..11 w2 ok acquire#1 fence=10`, []string{Order}},
		{"who came before a higher priority, and was granted before that stood in line", `
			3..20 w1 ok acquire#1 priority=1 queued=10 fence=19
			0..11 w2 ok acquire#1 fence=10`, nil},
		{"who came before an equal priority", `
			3..20 w1 ok acquire#1 queued=5 fence=19
			0..11 w2 ok acquire#1 fence=10`, nil},
		{"who came before a higher priority; clocks were ahead", `
			3..20 w1 ok acquire#1 priority=1 queued=5 fence=1019
			0..11 w2 ok acquire#1 fence=1010`, nil},
		{"who comes later is granted first; clocks were ahead", `
			0..20 w1 ok acquire#1 queued=2 fence=1019
			3..11 w2 ok acquire#1 fence=1010`, []string{Order}},
		{"who draws a place", passedStory("acquire#1 unordered"), nil},
		{"a try that passes the line", passedStory("try#1"), []string{Order}},
		{"a re-entry passes the line", passedStory("reenter#1"), nil},
		{"who was restored may have been passed", passedStory("acquire#1") + "\n15 w1 restored of#1", nil},
		{"who asked anew may have been passed", `
			0..20 w1 ok acquire#1 fence=19
			2 w1 queued of#1 claim=first
			3..11 w2 ok acquire#1 fence=10`, nil},
		{"who was stopped may have been passed", `
			0..1020 w1 ok acquire#1 queued=2 fence=1019
			3..1011 w2 ok acquire#1 fence=1010
			fault stop 5 1008 w1`, nil},
		{"another process was stopped", `
			0..1020 w1 ok acquire#1 queued=2 fence=1019
			200 w1 alive of#9 claim=y
			400 w1 alive of#9 claim=y
			600 w1 alive of#9 claim=y
			800 w1 alive of#9 claim=y
			3..1011 w2 ok acquire#1 fence=1010
			fault stop 5 1008 w3`, []string{Order}},
		{"a process that wrote nothing for a while", `
			0..1020 w1 ok acquire#1 queued=2 fence=1019
			3..1011 w2 ok acquire#1 fence=1010`, nil},

		{"given back while somebody waits, and nobody is granted", given, []string{HandOff}},
		{"given back, and granted by the release", handOffStory(11), nil},
		{"given back, and somebody else is granted by the release", given + `
			3..13 w3 ok acquire#1 fence=12
			14..21 w3 ok release#2 of#1`, nil},
		{"a wait that was cancelled may have been granted", given + "\n3..9 w3 fail acquire#1", nil},
		{"a wait that was cancelled long ago was not", given + "\n-3300..-3200 w3 fail acquire#1", []string{HandOff}},
		{"a wait that was cancelled a while ago was not, where its process worked all the time", given +
			beats(-1100, -600) + `
			-1100..-1000 w3 fail acquire#1`, []string{HandOff}},
		{"it may have been where its process paused", given + beats(-1100, -900) + beats(-850, -600) + `
			-1100..-1000 w3 fail acquire#1`, nil},
		{"a try that was refused never waited", given + "\n3..9 w3 fail try#1", []string{HandOff}},
		{"a killed process may have been granted", given + `
			3 w3 invoke acquire#1
			fault kill 4 5 w3 kills`, nil},
		{"who was restored may have been granted before", given + `
			3..33 w3 ok acquire#1 fence=32
			30 w3 restored of#1`, nil},
		{"who asked anew may have been granted before", given + `
			3..33 w3 ok acquire#1 fence=32
			30 w3 trouble of#1 claim=first is=lost`, nil},
		{"a hold that was lost before its release hands nothing on", given + `
			9 w1 ended of#1 is=lost
			fault cut -1000 -900 w1`, nil},
		{"another entry lives", given + "\n4..5 w1 ok reenter#8 fence=1", nil},
		{"another entry was left before", given + `
			4..5 w1 ok reenter#8 fence=1
			6..7 w1 ok release#9 of#8`, []string{HandOff}},
		{"data was lost soon after", given + "\nfault flush 100 101 amnesia", nil},

		{"an end that was none", `
			0..2 w1 ok acquire#1 fence=1 alive=6
			5 w1 ended of#1 is=lost
			fault cut -1000 -900 w1`, []string{Honesty}},
		{"asked before the end, told after it", `
			0..2 w1 ok acquire#1 fence=1 alive=4
			5 w1 ended of#1 is=lost
			fault cut -1000 -900 w1`, nil},
		{"believed in during the release", `
			0..2 w1 ok acquire#1 fence=1 alive=6
			5..7 w1 ok release#2 of#1`, []string{Honesty}},

		{"an acquire that never returned", "0 w1 invoke acquire#1", []string{Stuck}},
		{"a try that never returned", "0 w1 invoke try#1", []string{Stuck}},
		{"its process was killed", `
			0 w1 invoke acquire#1
			fault kill 4 5 w1 kills`, nil},
		{"another life of the process was killed", `
			0 w1.2 invoke acquire#1
			fault kill 4 5 w1.1 kills`, []string{Stuck}},
		{"what the worker calls stuck is told once", `
			0 w1 invoke acquire#1
			5 w1 stuck acquire#1`, []string{Stuck}},

		{"a claim is left", `
			0..2 w1 ok acquire#1 fence=1 claim=c
			3..4 w1 ok release#2 of#1
			9 w1 closed left=c`, []string{Left}},
		{"a claim is left of which nothing is known", "9 w1 closed left=c", []string{Left}},
		{"a claim is left by a close that failed", "9 w1 closed left=c err=timeout", nil},
		{"the release of what is left may have been lost", `
			0..2 w1 ok acquire#1 fence=1 claim=c
			3..4 w1 ok release#2 of#1
			9 w1 closed left=c
			fault failover 5 8 amnesia`, nil},

		{"a release by id after the release", forceStory + `
			5..6 w1 ok force#3 claim=w1-1 name=sem/s`, []string{Refused}},
		{"it is refused", forceStory + "\n5..6 w1 fail force#3 claim=w1-1 name=sem/s", nil},
		{"the release was lost", forceStory + `
			5..6 w1 ok force#3 claim=w1-1 name=sem/s
			fault failover 4 5 amnesia`, nil},
		{"a release with success of what somebody else had got", lostStory + `
			9..10 w1 ok release#2 of#1`, []string{Refused}},
		{"that release is refused", lostStory + "\n9..10 w1 fail release#2 of#1", nil},
		{"an earlier release may have run", lostStory + `
			5.5..5.6 w1 unknown release#2 of#1
			9..10 w1 ok release#3 of#1`, nil},

		{"a goroutine is left", "9 w1 leak err=goroutine", []string{Leak}},

		{"a release without an answer", unansweredStory, []string{Unharmed}},
		{"its process was cut off", unansweredStory + "\nfault cut 6 7 w1", nil},
		{"another process was cut off", unansweredStory + "\nfault cut 6 7 w2", []string{Unharmed}},
		{"all were cut off shortly before", unansweredStory + "\nfault cut -400 -300", nil},
		{"all were cut off long before", unansweredStory + "\nfault cut -800 -700", []string{Unharmed}},
		{"a fault that nobody may notice", unansweredStory + "\nfault scripts 6 7 unseen", []string{Unharmed}},
		{"any process wrote nothing for a while", unansweredStory + `
			-250 w2 alive of#9 claim=y
			6 w2 alive of#9 claim=y`, nil},
		{"a close failed, and nothing is wrong", "5000 w1 closed err=close:x", []string{Unharmed}},
		{"a close failed while its process was cut off", `
			5000 w1 closed err=close:x
			fault cut 3000 4000 w1`, nil},
		{"what a closed node has left could not be listed", "5000 w1 closed err=list:x", nil},
		{"the node was closed meanwhile", "0..9 w1 unknown acquire#1 is=closed", nil},
		{"an acquire without an answer", "0..9 w1 unknown acquire#1", []string{Unharmed}},
		{"an acquire without an answer, and its short lease bears no such pause", `
			0..120 w1 unknown acquire#1 lease=300
			1 w2 alive of#9 claim=y
			111 w2 alive of#9 claim=y`, nil},
		{"a longer lease of an acquire bears it", `
			0..120 w1 unknown acquire#1
			1 w2 alive of#9 claim=y
			111 w2 alive of#9 claim=y`, []string{Unharmed}},
		{"an acquire without an answer, and the server took its time", `
			0..120 w1 unknown acquire#1 lease=300
			1..111 w1 fail try#9 name=lock/y
			60 w1 alive of#77 claim=y`, nil},
		{"its caller bounds the wait", "0..9 w1 unknown acquire#1 bounded", nil},

		{"a re-entry without an answer", `
			0..1 w1 ok acquire#1 fence=1
			2..9 w1 unknown reenter#8 is=lost
			10..10 w1 ok release#20 of#1 fence=1`, []string{Unharmed}},
		{"the hold that it enters expires", `
			0..1 w1 ok acquire#1 fence=1
			2..9 w1 unknown reenter#8 is=lost
			10 w1 ended of#1 is=expired`, nil},
		{"the hold that it enters expires later", `
			0..1 w1 ok acquire#1 fixed fence=1 alive=10
			2..9 w1 unknown reenter#8 is=lost
			20 w1 ended of#1 is=expired`, []string{Unharmed}},
		{"the hold that it enters expired before", `
			0..1 w1 ok acquire#1 fence=1
			1.5 w1 ended of#1 is=expired
			2..9 w1 unknown reenter#8 is=lost`, []string{Unharmed}},

		{"a hold that is lost", needlessStory, []string{Unharmed}},
		{"it expires", strings.ReplaceAll(needlessStory, "lost", "expired"), nil},
		{"its node was closed", strings.ReplaceAll(needlessStory, "lost", "lost,closed"), nil},
		{"its process was stopped before", needlessStory + "\nfault stop -3000 -1000 w1", nil},
		{"its process was stopped long before", needlessStory + "\nfault stop -5000 -4000 w1", []string{Unharmed}},
		{"another process was stopped before", needlessStory + "\nfault stop -3000 -1000 w2", []string{Unharmed}},
		{"subscriptions were cut before", needlessStory + "\nfault subscriptions -100 -90 unseen", []string{Unharmed}},
		{"its lease does not renew", strings.Replace(needlessStory, "acquire#1", "acquire#1 fixed", 1), nil},
		{"an entry of its owner has a lease that does not renew", needlessStory + `
			3..3.5 w1 ok reenter#8 fixed fence=1`, nil},
		{"an entry of its owner has expired", needlessStory + `
			3..3.5 w1 ok reenter#8 fence=1
			8 w1 ended of#8 is=expired`, nil},
		{"its short lease bears no such pause", strings.ReplaceAll(needlessStory, "acquire#1", "acquire#1 lease=300") + `
			-120 w2 alive of#9 claim=y
			-10 w2 alive of#9 claim=y`, nil},
		{"a longer lease bears it", needlessStory + `
			-120 w2 alive of#9 claim=y
			-10 w2 alive of#9 claim=y`, []string{Unharmed}},
		{"the server took its time", needlessStory + `
			-340..0.1 w1 fail try#9 name=lock/y
			-230 w1 alive of#77 claim=y
			-120 w1 alive of#77 claim=y`, nil},
		{"the server took its time, and less than a heartbeat has", needlessStory + `
			-170..0.1 w1 fail try#9 name=lock/y
			-90 w1 alive of#77 claim=y`, []string{Unharmed}},
		{"somebody waited in a line", needlessStory + `
			-170..0.1 w1 ok acquire#9 name=lock/y fence=0
			-90 w1 alive of#77 claim=y`, []string{Unharmed}},

		{"told of the grant at once", wakeStory(52, ""), nil},
		{"told of the grant by the heartbeat", woken, []string{WakeUp}},
		{"a fixed lease was confirmed", wakeStory(350, "fixed"), nil},
		{"it may have been restored", woken + "\n300 w1 restored of#1", nil},
		{"granted before it was known to stand in line", strings.Replace(woken, "queued=10", "queued=60", 1), nil},
		{"its process was cut off before", woken + "\nfault cut -900 -800 w1", nil},
		{"another process was cut off before", woken + "\nfault cut -900 -800 w2", []string{WakeUp}},
		{"pushes were refused, which nobody may notice", woken + "\nfault acl 0 100 unseen", nil},
		{"a master was lost before", woken + "\nfault failover -4000 -3000 amnesia", nil},
		{"a call of its process was answered late", woken + "\n70..120 w1 fail try#9 name=lock/y", nil},
		{"a call of another process was answered late", woken + `
			70..120 w2 fail try#9 name=lock/y`, []string{WakeUp}},
		{"the clock is ahead of the fences", woken + "\n500..501 w2 ok acquire#9 name=lock/z fence=900", nil},
		{"nobody was subscribed", strings.Replace(woken, "detail=subscribed", "detail=other", 1), nil},
		{"the subscription was not there yet", strings.Replace(woken, "0 w1 trouble", "60 w1 trouble", 1), nil},
		{"the subscription came long after", strings.Replace(woken, "0 w1 trouble", "6000 w1 trouble", 1), nil},
		{"the subscription had broken", woken + "\n700 w1 trouble detail=subscribed node=n", nil},
		{"the subscription was refused", woken + "\n20 w1 trouble detail=deaf node=n err=NOPERM", nil},
		{"that of another node was", woken + "\n20 w1 trouble detail=deaf node=m err=NOPERM", []string{WakeUp}},
		{"it was refused only afterwards", woken + "\n60 w1 trouble detail=deaf node=n err=NOPERM", []string{WakeUp}},
		{"it was found to bring nothing", woken + "\n20 w1 trouble detail=deaf node=n", []string{WakeUp}},
		{"the process wrote nothing for a while", lateStory(350, "") + busyStory(200, 320), nil},
		{"it did not reach the server before", lateStory(350, "") + `
			80 w1 alive of#77 claim=y
			160 w1 alive of#77 claim=y` + busyStory(40, 210), nil},
	})
}

// tale is a story, and the rules that are broken in it.
type tale struct {
	name, text string
	broken     []string
}

// tell has the checker read stories, and find that those rules are broken in each.
func tell(t *testing.T, tales []tale) {
	t.Helper()
	for _, tc := range tales {
		t.Run(tc.name, func(t *testing.T) {
			report := Check(story(t, tc.text))
			require.ElementsMatch(t, tc.broken, rulesOf(report), "%v", report.Violations)
		})
	}
}

// passedStory has w2 come later than w1, and be granted first.
func passedStory(by string) string {
	return "\n0..20 w1 ok acquire#1 queued=2 fence=19\n3..11 w2 ok " + by + " fence=10"
}

// silentStory has the same, while a process had no answer.
func silentStory(process string) string {
	return `
			0..1000 w1 ok acquire#1 queued=2 fence=999
			4..350 ` + process + ` fail try#9 name=lock/y
			800..850 w2 ok acquire#1 fence=849
			500 w1 alive of#77 claim=y`
}

// handOffStory has w1 give a lock back from 10 to 13 while w2 waits, who is granted at
// that time. The fences of others do not come in between where w2's comes later.
func handOffStory(fence int) string {
	return fmt.Sprintf(`
			0..2 w1 ok acquire#1 fence=1 alive=8
			10..13 w1 ok release#2 of#1
			3..%d w2 ok acquire#1 queued=5 fence=%d`, fence+2, fence)
}

// beats are short calls of w3, one after the other, that are answered.
func beats(from, to int) string {
	var all strings.Builder
	for at := from; at < to; at += 20 {
		fmt.Fprintf(&all, "\n%d..%d w3 fail try#%d", at, at+10, 10_000+at)
	}
	return all.String()
}

// forceStory is a permit that was given back.
const forceStory = `
			0..1 w1 ok acquire#1 name=sem/s fence=0.5
			2..3 w1 ok release#2 of#1 name=sem/s`

// lostStory is a lock that was lost, and granted to somebody else.
const lostStory = `
			0..2 w1 ok acquire#1 fence=1 alive=4
			5 w1 ended of#1 is=lost
			6..8 w2 ok acquire#1 fence=7
			fault cut -300 -200 w1`

// unansweredStory is a release without an answer.
const unansweredStory = `
			0..2 w1 ok acquire#1 fence=1 alive=4
			5..9 w1 unknown release#2 of#1`

// needlessStory is a hold that was lost.
const needlessStory = `
			0..2 w1 ok acquire#1 fence=1 alive=4
			9 w1 ended of#1 is=lost
			9.5..9.7 w1 ok release#2 of#1`

// busyStory has a process write every 40 ms, and call the server: from 0 to 400, but for
// the time between the two.
func busyStory(from, to int) string {
	var text strings.Builder
	for at := 0; at < 400; at += 40 {
		if at > from && at < to {
			continue
		}
		fmt.Fprintf(&text, `
			%d..%d w1 fail try#%d name=lock/y
			%d..%d w1 ok extend#%d of#77 name=lock/y`, at, at+1, 100+at, at+2, at+3, 500+at)
	}
	return text.String()
}

// lateStory has w1 granted at 50, and hear of it then. In a wakeStory it writes all the time.
func lateStory(hears int, more string) string {
	return fmt.Sprintf(`
			0 w1 trouble detail=subscribed node=n
			5..%d w1 ok acquire#1 node=n %s queued=10 fence=50`, hears, more)
}

func wakeStory(hears int, more string) string { return lateStory(hears, more) + busyStory(400, 0) }
