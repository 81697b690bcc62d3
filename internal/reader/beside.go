package reader

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Probed is what the swarm knows of a node.
type Probed struct {
	Ago       int64 // since its last probe (ms)
	Limit     int64 // after which it is dead (ms)
	Condemned bool
}

// swarmName is the name of the only swarm of a namespace.
const swarmName = "nodes"

var memberText = regexp.MustCompile(`(?s)^\d+ (\d+) (\d+) `)

// Probed reads what the swarm knows of nodes; of those that it does not know, nothing. See scripts/swarm/member.lua.
func (r *Reader) Probed(ctx context.Context, nodes ...string) (map[string]Probed, error) {
	var p trip
	members := make([]string, 0, 2*len(nodes))
	for _, node := range nodes {
		members = append(members, "p:"+node, "c:"+node)
	}
	scores := p.scores(r.space.Probes(swarmName), "", members...)
	records := p.fields(r.space.State(keyspace.Swarm, swarmName), "n:", nodes...)
	answers, err := r.run.Read(ctx, "swarm", scriptkit.From{}, p.commands...)
	if err != nil {
		return nil, err
	}
	p.results = answers.Results
	found := map[string]Probed{}
	at, texts := p.at(scores), p.texts(records)
	for i, node := range nodes {
		var ends, limit int64
		words := memberText.FindStringSubmatch(texts[i])
		if words == nil {
			continue
		}
		ends, _ = strconv.ParseInt(words[1], 10, 64)
		limit, _ = strconv.ParseInt(words[2], 10, 64)
		probes, condemned := at[2*i], at[2*i+1] != absent
		switch {
		case condemned:
		case probes != absent:
			ends = probes
		default:
			continue
		}
		found[node] = Probed{Ago: answers.Now - (ends - limit), Limit: limit, Condemned: condemned}
	}
	return found, p.err
}

// Server is what the server of a name says of itself.
type Server struct {
	Full    bool // it refuses what grows
	Refuses bool // it refuses all writes
}

// Server asks the server that has a name about itself. Not every user may.
func (r *Reader) Server(ctx context.Context, kind keyspace.Kind, name string) (Server, error) {
	info := func(section string) scriptkit.Command { return scriptkit.Command{Verb: []string{"INFO", section}} }
	answers, err := r.run.Read(ctx, "info", scriptkit.From{},
		scriptkit.Command{Verb: []string{"MGET"}, Keys: []string{r.space.State(kind, name)}}, // goes to that server, and the others with it
		info("memory"), info("replication"), info("persistence"))
	if err != nil {
		return Server{}, err
	}
	said := map[string]string{}
	for _, result := range answers.Results[1:] {
		text, err := result.ToString()
		if err != nil {
			return Server{}, err
		}
		for line := range strings.Lines(text) {
			field, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			said[field] = value
		}
	}
	number := func(field string) int64 {
		n, _ := strconv.ParseInt(said[field], 10, 64)
		return n
	}
	most := number("maxmemory")
	return Server{
		Full: most > 0 && said["maxmemory_policy"] == "noeviction" && number("used_memory")-number("mem_not_counted_for_evict") >= most,
		// How many replicas are good is told only where writes need some.
		Refuses: said["min_slaves_good_slaves"] == "0" || said["aof_last_write_status"] == "err",
	}, nil
}
