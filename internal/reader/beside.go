package reader

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Server is what the server of a name says of itself.
type Server struct {
	Full    bool // it refuses what grows
	Refuses bool // it refuses all writes
}

// info asks a server about itself. Not every user may.
var info = scriptkit.Command{Verb: []string{"INFO", "memory", "replication", "persistence"}, Optional: true}

// Server asks the server that has a name about itself. Not every user may.
func (r *Reader) Server(ctx context.Context, kind keyspace.Kind, name string) (*Server, error) {
	answers, err := r.run.Read(ctx, "info", scriptkit.From{Unasked: true, Untimed: true},
		scriptkit.Command{Verb: []string{"MGET"}, Keys: []string{r.space.State(kind, name)}}, // goes to that server, and the other with it
		info)
	if err != nil {
		return nil, err
	}
	return serverOf(answers.Results[1]), nil
}

// saidOf are the fields of an answer to INFO.
func saidOf(result rueidis.RedisResult) (map[string]string, error) {
	text, err := result.ToString()
	if err != nil {
		return nil, err
	}
	said := map[string]string{}
	for line := range strings.Lines(text) {
		field, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		said[field] = value
	}
	return said, nil
}

// bytesOf is a field that is a number, 0 where it is none.
func bytesOf(said map[string]string, field string) int64 {
	n, _ := strconv.ParseInt(said[field], 10, 64)
	return n
}

// serverOf is what an answer to info says, nil for an error.
func serverOf(result rueidis.RedisResult) *Server {
	said, err := saidOf(result)
	if err != nil {
		return nil
	}
	most := bytesOf(said, "maxmemory")
	return &Server{
		Full: most > 0 && said["maxmemory_policy"] == "noeviction" && bytesOf(said, "used_memory")-bytesOf(said, "mem_not_counted_for_evict") >= most,
		// How many replicas are good is told only where writes need some.
		Refuses: said["min_slaves_good_slaves"] == "0" || said["aof_last_write_status"] == "err",
	}
}
