// Package history is what the processes of a torture run write down, and what the
// checker reads: one line of JSON for each thing that happened, written through at
// once, so that a process that is killed leaves all that it did.
package history

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Kind is what happened.
type Kind string

// What a process writes. Invoke, and one of OK, Fail and Unknown, are about one
// operation; the others about a hold or a claim.
const (
	// Invoke is written before an operation begins.
	Invoke Kind = "invoke"
	// OK is written when an operation has succeeded: of an acquire with the
	// claim, the fence, the resource and the capacity.
	OK Kind = "ok"
	// Fail is written when an operation has failed and certainly has had no
	// effect that lasts: a refusal.
	Fail Kind = "fail"
	// Unknown is written when an operation has failed and may have had its effect.
	Unknown Kind = "unknown"
	// Alive says that the hold of the acquire Hold was believed in at At: At was
	// read first, then the handle said that it has not ended.
	Alive Kind = "alive"
	// Ended says that the handle of the acquire Hold said that it has ended, by
	// itself; Err says why.
	Ended Kind = "ended"
	// Wanted says that the handle of the acquire Hold has told by now that somebody wants the
	// hold back. It is looked for right after each Alive.
	Wanted Kind = "wanted"
	// Queued says that the claim stands in line by now: its process had the
	// server's word for it at At.
	Queued Kind = "queued"
	// Restored says that the claim stood in line no longer, and does again since At
	// at the latest.
	Restored Kind = "restored"
	// Trouble is an event of the node that the checker should know of: Detail is
	// the kind of the event (cleanup_failed, release_failed, repeated, ...).
	Trouble Kind = "trouble"
	// Closed says that a node was closed, with all its clean-ups done if
	// Err is empty. Left are the claims of its node that a listing, begun after
	// the close, still showed.
	Closed Kind = "closed"
	// Stuck says that the operation Op has not returned though everything was
	// healed and released for Detail.
	Stuck Kind = "stuck"
	// Leak says that the process ended with goroutines that it did not begin with.
	Leak Kind = "leak"
)

// What is done, in Do.
const (
	Acquire = "acquire" // waits
	Try     = "try"     // does not wait
	Reenter = "reenter" // an owner that holds the name already
	Release = "release"
	Renew   = "renew"
	Extend  = "extend"
	Force   = "force" // a release by the id of a claim that ended before: must be refused
	// Look asks the server for its listing of a hold. OK has the fence and the resource
	// that the server shows; Fail says that it shows no such hold.
	Look = "look"
	// Add and Remove put a resource into a pool, and take it out.
	Add    = "add"
	Remove = "remove"
	// Pause has nothing granted of a name for Lasts, and Unpause ends that.
	Pause   = "pause"
	Unpause = "unpause"
	// Want asks for a hold back: that of Claim or, where it is "", all of the name.
	Want = "want"
	// Drain has all that a node has end, of all kinds, and the node get nothing more, until StopDrain.
	Drain     = "drain"
	StopDrain = "stop-drain"
)

// Never is a BindWait without an end.
const Never = -1

// Event is a line of a history.
type Event struct {
	// At is CLOCK_MONOTONIC in ns, which all processes of a machine have in common.
	At int64 `json:"at"`
	// Real is CLOCK_REALTIME in us, read right after At. A fence is at least the
	// server's time in us of its grant.
	Real    int64  `json:"real"`
	Process string `json:"process"` // "w3.1": the second life of the third
	Kind    Kind   `json:"kind"`

	Op        int64  `json:"op,omitempty"`        // of Invoke, OK, Fail, Unknown, Stuck: drawn once per process, from 1
	Do        string `json:"do,omitempty"`        // of Invoke, OK, Fail, Unknown
	Primitive string `json:"primitive,omitempty"` // sem, lock, pool; node for what is about none of them alone
	Name      string `json:"name,omitempty"`
	Hold      int64  `json:"hold,omitempty"` // the Op of the acquire whose hold it is about; not of an acquire itself
	Claim     string `json:"claim,omitempty"`
	Node      string `json:"node,omitempty"`
	Crew      int64  `json:"crew,omitempty"` // of the Invoke of an acquire, Drain and StopDrain: whose node, whatever its id is; from 1
	Fence     int64  `json:"fence,omitempty"`
	Resource  string `json:"resource,omitempty"`  // that was granted or shown; of Add and Remove: that they are about
	Weight    int    `json:"weight,omitempty"`    // of an Invoke and OK of an acquire; 0 means 1
	Capacity  int    `json:"capacity,omitempty"`  // of a semaphore, or of each resource of a pool
	Priority  int    `json:"priority,omitempty"`  // of an acquire
	Unordered bool   `json:"unordered,omitempty"` // of an acquire: a random or last-come place
	Lease     int64  `json:"lease,omitempty"`     // of an acquire: ms; 0 for one without end
	Fixed     bool   `json:"fixed,omitempty"`     // of an acquire: it does not renew
	Bounded   bool   `json:"bounded,omitempty"`   // of an acquire: its caller may leave, or the hold end, before it is answered
	Named     string `json:"named,omitempty"`     // of an acquire: the resource that alone will do
	Bind      string `json:"bind,omitempty"`      // of an acquire: the binding
	BindWait  int64  `json:"bind_wait,omitempty"` // of an acquire: how long it waits for the bound resource: ms, or Never
	Cooldown  int64  `json:"cooldown,omitempty"`  // of an acquire: how long what it gets rests afterwards: ms
	Lasts     int64  `json:"lasts,omitempty"`     // of a Pause: ms

	Reason string   `json:"reason,omitempty"` // of a Fail: berth.Reason
	Err    string   `json:"err,omitempty"`
	Is     []string `json:"is,omitempty"` // the sentinels that Err matches: lost, expired, released, not acquired, busy, closed, cancelled, timeout
	Detail string   `json:"detail,omitempty"`
	Left   []string `json:"left,omitempty"`
	Former string   `json:"former,omitempty"` // of Trouble that is node_replaced: the id that the node had before
}

// Fault is what the nemesis did. It is over at To, and heals by then.
type Fault struct {
	Name    string `json:"name"`
	From    int64  `json:"from"` // CLOCK_MONOTONIC ns
	To      int64  `json:"to"`
	Real    int64  `json:"real"`     // CLOCK_REALTIME us at From
	RealEnd int64  `json:"real_end"` // and at To
	// Process is whom it met, "" for all.
	Process string `json:"process,omitempty"`
	// Amnesia says that the server may have lost what was written before To, or
	// that its clock went forward: DESIGN 7 allows two holders for a lease then.
	Amnesia bool `json:"amnesia,omitempty"`
	// Lost is, of an Amnesia, from when on nothing more is lost: what the server answers
	// since then it remembers. 0 means To.
	Lost int64 `json:"lost,omitempty"`
	// Kills says that Process was killed: what it had out is unknown.
	Kills bool `json:"kills,omitempty"`
	// Behind says that the server's clock was behind that of the machine from From
	// to To: a fence then says nothing about the machine's time.
	Behind bool `json:"behind,omitempty"`
	// Unseen says that no caller may notice it: no operation stays without an answer,
	// and no hold is lost.
	Unseen bool `json:"unseen,omitempty"`
	// Keeps is the lease, in ms, from which on a hold that renews outlasts it. 0 says nothing.
	Keeps int64 `json:"keeps,omitempty"`
	// Names are, of one that Keeps is about, the names that it met, as they are in keys: the others are kept.
	Names []string `json:"names,omitempty"`
	// Passes says that the server refused for a while what it did before, by words that say so:
	// no wait without a bound ends by that.
	Passes bool `json:"passes,omitempty"`
	// Shown are, of an Amnesia, the claims that the server still had without an end at To, when each node had had
	// long enough to ask its releases again.
	Shown []string `json:"shown,omitempty"`
	// Detail is what an operator would want to know: ids, addresses, durations.
	Detail string `json:"detail,omitempty"`
}

// LostNow says that nothing more is lost from now on.
func (f *Fault) LostNow() { f.Lost = Monotonic() }

// LostBy is from when on the server remembers what it answers.
func (f Fault) LostBy() int64 { return cmp.Or(f.Lost, f.To) }

// Fill is a time in which the driver has put into the pools what they lacked. It does so
// before the workers begin, before a fault is over that may have lost data or killed who had
// taken something out, and at the end; that of the beginning need not be told.
type Fill struct {
	From int64 `json:"from"` // CLOCK_MONOTONIC ns
	To   int64 `json:"to"`
}

// Run is all that is known of one round.
type Run struct {
	Seed     int64   `json:"seed"`
	Topology string  `json:"topology"`
	Faults   []Fault `json:"faults"`
	Fills    []Fill  `json:"fills,omitempty"`
	Events   []Event `json:"-"` // of all processes, by At
	// Healed is when the last fault was over and the drain began: from then on
	// nobody asks for anything new.
	Healed int64 `json:"healed"`
}

// RunFile is where the folder of a round has all but the events.
const RunFile = "run.json"

// Save writes all but the events to the folder in which the histories are.
func (r *Run) Save(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, RunFile), text, 0o600)
}

// Load reads a round from its folder.
func (r *Run) Load(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, RunFile))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, r); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return err
	}
	r.Events = nil
	for _, path := range paths {
		events, err := Read(path)
		if err != nil {
			return err
		}
		r.Events = append(r.Events, events...)
	}
	slices.SortStableFunc(r.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return nil
}

// Writer writes the history of one process. It is safe for concurrent use.
type Writer struct {
	process string
	mu      sync.Mutex
	file    *os.File // guarded by mu
	err     error    // guarded by mu: the first that failed
}

// Create begins the history of a process; path must not be there.
func Create(path, process string) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	return &Writer{process: process, file: file}, err
}

// Write adds an event, and fills its Process and, where At is 0, its times.
func (w *Writer) Write(e Event) {
	if e.At == 0 {
		e.At, e.Real = Now()
	}
	e.Process = w.process
	line, err := json.Marshal(e)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		_, err = w.file.Write(append(line, '\n'))
	}
	if w.err == nil {
		w.err = err
	}
}

// Close ends the history, and returns the first error of any write.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.err, w.file.Close())
}

// Read reads the history of a process. A last line that was cut off, as by a kill,
// is left out.
func Read(path string) ([]Event, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var events []Event
	in := bufio.NewReader(file)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, len(events)+1, err)
		}
		events = append(events, e)
	}
}

// Now is CLOCK_MONOTONIC in ns and CLOCK_REALTIME in us.
func Now() (at, wall int64) {
	return Monotonic(), time.Now().UnixMicro()
}
