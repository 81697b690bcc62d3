package reader

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// About is what one server tells whoever watches it. What INFO says is empty for a user that may not send INFO.
type About struct {
	Replica           bool
	Software, Version string // redis or valkey
	Used, Most        int64  // memory in bytes; Most is 0 for no limit
	Server            *Server
	Silent            error // why INFO says nothing, nil if it does
}

// About asks one server.
func (r *Reader) About(ctx context.Context, node rueidis.Client) (About, error) {
	answers, err := r.run.Read(ctx, "info", scriptkit.From{Node: node, Untimed: true},
		scriptkit.Command{Verb: []string{"INFO", "server", "memory", "replication", "persistence"}, Optional: true})
	if err != nil {
		return About{}, err
	}
	a := About{Replica: answers.Replica, Server: serverOf(answers.Results[0])}
	said, err := saidOf(answers.Results[0])
	if err != nil {
		a.Silent = err // it may not be asked
		return a, nil
	}
	a.Software, a.Version = "redis", said["redis_version"]
	if version, ok := said["valkey_version"]; ok {
		a.Software, a.Version = "valkey", version
	}
	a.Used, a.Most = bytesOf(said, "used_memory"), bytesOf(said, "maxmemory")
	return a, nil
}

// Census is how many nodes of the swarm are how.
type Census struct {
	Alive     int64
	Zombie    int64 // have not probed within their own limit, and are not condemned yet
	Condemned int64 // within the memory
}

// Census counts the nodes of the swarm. memory is for how long a condemned node is remembered. Its errors are those of NodesPage.
func (r *Reader) Census(ctx context.Context, memory time.Duration) (c Census, err error) {
	_, err = r.swarm(ctx, func(t *turn) error {
		var p trip
		format := p.fields(t.key(keyspace.StatePart), "", "fmt")
		if err := t.ask(&p); err != nil {
			return err
		}
		if text := p.texts(format)[0]; p.err != nil {
			return p.err
		} else if err := state.CheckSwarm(text); err != nil {
			return err
		}
		p = trip{}
		probes := t.key(keyspace.ProbesPart)
		alive := p.count(probes, t.now+1, state.Condemned-1)
		zombie := p.count(probes, 0, t.now)
		condemned := p.count(probes, state.Condemned+t.now-memory.Milliseconds()+1, state.Left-1)
		if err := t.ask(&p); err != nil {
			return err
		}
		c = Census{p.int(alive), p.int(zombie), p.int(condemned)}
		return p.err
	})
	return c, err
}
