package reader

import (
	"context"
	"strconv"
	"strings"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

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
