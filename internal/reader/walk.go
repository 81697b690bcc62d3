package reader

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// scanned is about how many keys one SCAN passes.
const scanned = 500

// globs have the characters of a prefix mean themselves in a pattern.
var globs = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)

// match is the pattern of the names of some kinds that begin with a prefix.
func (r *Reader) match(prefix string, kinds ...keyspace.Kind) string {
	kind := keyspace.Kind("*")
	if len(kinds) == 1 {
		kind = kinds[0]
	}
	return strings.Replace(r.space.Match(kind), "{*}", "{"+globs.Replace(prefix)+"*}", 1)
}

// pattern says which keys a SCAN is about: about how many it passes, and whether fat names alone are meant.
type pattern struct {
	match string
	count int
	fat   bool
}

// place is where a walk over the names of all servers is. Replicas are passed over; where there is no
// primary, the names of the first replica that answers are told. A server that fails is not asked again.
type place struct {
	Version int         `json:"v"`
	Node    string      `json:"node"`              // the server's address, "" for the first
	Scan    string      `json:"scan"`              // where its SCAN is
	Primary bool        `json:"primary,omitempty"` // some server was one
	Any     bool        `json:"any,omitempty"`     // none was, so a replica will do
	From    string      `json:"from,omitempty"`    // where Left was found
	Left    []berth.Ref `json:"left,omitempty"`    // names that were found and are still to be read
	In      string      `json:"in,omitempty"`      // where in the claims of the first of them; see turn.claims
	Out     []string    `json:"out,omitempty"`     // the servers that have failed
	done    bool

	answered bool // since the walk was begun, or gone on with, some server has
}

// step passes some keys of a server, and returns the names among them. Problems are those of servers,
// whose names are left out from there on.
func (r *Reader) step(ctx context.Context, nodes map[string]rueidis.Client, at *place, of pattern, kinds ...keyspace.Kind) (found []berth.Ref, from scriptkit.Answers, problems []error) {
	node, known := nodes[at.Node]
	if !known {
		problem := fmt.Errorf("berth: the server %s is gone: of its names some may be missing", at.Node)
		at.on(nodes)
		return nil, from, []error{problem}
	}
	found, next, from, problem := r.scan(ctx, node, at, of, kinds...)
	if problem != nil {
		return nil, from, r.lost(ctx, nodes, at, at.Node, problem)
	}
	at.answered = true
	switch {
	case from.Replica && !at.Any:
		at.on(nodes)
		return nil, from, nil
	case next == "0" && at.Any:
		at.done = true
	case next == "0":
		at.Primary = true
		at.on(nodes)
	default:
		at.Primary, at.Scan = at.Primary || !from.Replica, next
	}
	return found, from, nil
}

// lost leaves a server out that has failed, and those that do not answer now: all others are asked at once, for as long as
// one attempt may take, so that many silent servers hardly take longer than one. It returns the problems of all of them.
func (r *Reader) lost(ctx context.Context, nodes map[string]rueidis.Client, at *place, failed string, problem error) []error {
	limited, cancel := scriptkit.Limit(ctx, r.run.CallTimeout())
	defer cancel()
	var (
		mu    sync.Mutex
		asked sync.WaitGroup
		found = map[string]error{failed: problem}
	)
	for address, node := range nodes {
		if address == failed || slices.Contains(at.Out, address) {
			continue
		}
		asked.Go(func() {
			_, err := r.run.Read(limited, "TIME", scriptkit.From{Node: node, Unasked: true})
			mu.Lock()
			defer mu.Unlock()
			if at.answered = at.answered || err == nil; err != nil {
				found[address] = err
			}
		})
	}
	asked.Wait()
	problems := make([]error, 0, len(found))
	for _, address := range slices.Sorted(maps.Keys(found)) {
		at.Out, problems = append(at.Out, address), append(problems, found[address])
	}
	if slices.Contains(at.Out, at.Node) && !at.done {
		at.on(nodes)
	}
	return problems
}

// on goes to the next server.
func (at *place) on(nodes map[string]rueidis.Client) {
	addresses := slices.DeleteFunc(slices.Sorted(maps.Keys(nodes)), func(a string) bool { return slices.Contains(at.Out, a) })
	i, found := slices.BinarySearch(addresses, at.Node)
	if found {
		i++
	}
	if i == len(addresses) && !at.Primary && !at.Any {
		at.Any, i = true, 0
	}
	if at.Scan = "0"; i < len(addresses) {
		at.Node = addresses[i]
	} else {
		at.done = true
	}
}

// scan passes some keys of a server, and returns those that are names of some kinds, and where the next SCAN
// begins.
func (r *Reader) scan(ctx context.Context, node rueidis.Client, at *place, of pattern, kinds ...keyspace.Kind) (found []berth.Ref, next string, from scriptkit.Answers, err error) {
	verb := []string{"SCAN", at.Scan, "MATCH", of.match, "COUNT", strconv.Itoa(of.count)}
	if of.fat {
		verb = append(verb, "TYPE", "hash")
	}
	from, err = r.run.Read(ctx, "SCAN", scriptkit.From{Node: node, Primary: at.Any && r.decide}, scriptkit.Command{Verb: verb})
	if err != nil {
		return nil, "", from, err
	}
	entry, err := from.Results[0].AsScanEntry()
	if err != nil {
		return nil, "", from, err
	}
	for _, key := range entry.Elements {
		for _, kind := range kinds {
			if name, ok := r.space.NameOf(kind, key); ok {
				found = append(found, berth.Ref{Kind: kind, Name: name})
			}
		}
	}
	return found, strconv.FormatUint(entry.Cursor, 10), from, nil
}

// Servers goes through the names of a kind that the servers know, or those in fat form alone: each once, those of each
// server by themselves. It promises what SCAN promises, as long as no server is replaced and no slot moves.
func (r *Reader) Servers(ctx context.Context, redis rueidis.Client, kind keyspace.Kind, fat bool) iter.Seq[iter.Seq2[string, error]] {
	return func(yield func(iter.Seq2[string, error]) bool) {
		seen, nodes, at := make(map[string]bool), redis.Nodes(), place{}
		for at.on(nodes); !at.done; {
			address := at.Node
			names := func(yield func(string, error) bool) {
				for !at.done && at.Node == address {
					found, _, problems := r.step(ctx, nodes, &at, pattern{r.match("", kind), scanned, fat}, kind)
					for _, problem := range problems {
						if !yield("", problem) {
							return
						}
					}
					for _, ref := range found {
						if !seen[ref.Name] && !yield(ref.Name, nil) {
							return
						}
						seen[ref.Name] = true
					}
				}
			}
			if !yield(names) {
				return
			}
			if !at.done && at.Node == address {
				at.on(nodes) // whoever walks has left the server
			}
		}
	}
}

// used leaves out the names of a server that are thin and idle. One that cannot be read is not left out.
func (r *Reader) used(ctx context.Context, redis, node rueidis.Client, names []berth.Ref) (used []berth.Ref, _ error) {
	if len(names) == 0 {
		return nil, nil
	}
	ask, asked := trip{long: &r.long}, make([]berth.Ref, 0, len(names))
	for _, ref := range names {
		key := r.space.State(ref.Kind, ref.Name)
		if _, known := r.long.letter(key, ""); known && !r.decide {
			used = append(used, ref)
			continue
		}
		asked = append(asked, ref)
		if len(asked) == 1 || redis.Mode() == rueidis.ClientModeCluster {
			ask.add("MGET", key)
		} else {
			ask.commands[0].Keys = append(ask.commands[0].Keys, key)
		}
	}
	if len(asked) == 0 {
		return used, nil
	}
	answers, err := r.run.Read(ctx, "names", scriptkit.From{Node: node, Primary: r.decide}, ask.commands...)
	if err != nil {
		return nil, err
	}
	ask.results = answers.Results
	for i, text := range ask.all() {
		if thin, _, ok := state.ParseThin(text); !ok || thin.Ends > answers.Now {
			used = append(used, asked[i])
		}
	}
	return used, nil
}

// Every goes through the names of Servers.
func (r *Reader) Every(ctx context.Context, redis rueidis.Client, kind keyspace.Kind) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for names := range r.Servers(ctx, redis, kind, false) {
			for name, err := range names {
				if !yield(name, err) {
					return
				}
			}
		}
	}
}
