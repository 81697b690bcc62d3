package exporter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

const (
	// pages is how many pages of a walk over all names a reading reads at the most: each looks at little more than 1000
	// entries, takes little more than 200 ms and looks up to 200 times for names.
	pages = 4
	// triesMost is how many readings try to read a page. Then some of its names may be missing, and a walk of which no reading
	// has read a page to its end begins again.
	triesMost = 3
	// serversMost is how many servers are reported.
	serversMost = 100
	// condemnedFor is for how long the swarm remembers a node that it has condemned.
	condemnedFor = 24 * time.Hour
)

// reading is what was read at once. It never changes.
type reading struct {
	began    time.Time // by the clock of this process
	took     time.Duration
	servers  []server
	swarm    *reader.Census     // nil: not read
	drains   *drains            // nil: not read
	names    *census            // of the last walk that came to its end; nil: none has yet
	whole    bool               // that was in this reading, and nothing was left out
	waits    map[class]*figures // who waits, nil: not read
	left     bool               // more names are waited for than waits has
	cycles   *inspect.Cycles    // of the last search that succeeded; nil: none has yet
	problems []error            // why something is missing
	refused  bool               // there is a server, and it does not let the user in
}

// server is one that was asked about itself.
type server struct {
	address string
	reader.About
	err error // it has not answered, or refused
}

// answered reports whether the server has answered, be it with a refusal.
func (s *server) answered() bool { return s.err == nil || turnedAway(s.err) }

// turnedAway says that a server answers, but not to this user.
func turnedAway(err error) bool {
	var answer *rueidis.RedisError
	return errors.As(err, &answer) && slices.ContainsFunc([]string{"NOAUTH ", "WRONGPASS ", "NOPERM "}, func(code string) bool {
		return strings.HasPrefix(answer.Error(), code)
	})
}

// up reports whether a server has answered.
func (r *reading) up() bool {
	return r.refused || slices.ContainsFunc(r.servers, func(s server) bool { return s.answered() })
}

// silent reports whether a server has not answered, or refused.
func (r *reading) silent() bool {
	return slices.ContainsFunc(r.servers, func(s server) bool { return s.err != nil })
}

// problem is what is wrong, in a line; "" for nothing.
func (r *reading) problem() string {
	errs := slices.Clone(r.problems)
	for _, s := range r.servers {
		if s.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.address, s.err))
		}
	}
	if len(errs) == 0 {
		return ""
	}
	line := errs[0].Error()
	if len(errs) > 1 {
		line += fmt.Sprintf(" (and %d more)", len(errs)-1)
	}
	return line
}

func (r *reading) failed(what string, errs ...error) {
	for _, err := range errs {
		if err != nil {
			r.problems = append(r.problems, fmt.Errorf("%s: %w", what, err))
		}
	}
}

// source reads a server, one reading after the other.
type source struct {
	redis    rueidis.Client
	patience time.Duration // how long a server may take to answer
	about    *reader.Reader
	names    *inspect.Reader
	overview *inspect.Overview
	search   *search
	classes  *classes

	walk   *census // under way, nil for none
	cursor string  // where it goes on
	tries  int     // how many readings have read there, and not all
	walked *census // the last one that came to its end
}

// newSource returns what reads the names of a namespace. within is how long a reading may take.
func newSource(redis rueidis.Client, namespace string, within time.Duration, classes *classes) (*source, error) {
	// A reading asks a server that is silent a few times, and the others must be told in time.
	s := &source{redis: redis, patience: within / 5, classes: classes}
	retry := berth.Retry{Within: s.patience}
	space, err := keyspace.New(namespace)
	if err != nil {
		return nil, err
	}
	s.about = reader.New(scriptkit.NewRunner(redis, scriptkit.Options{Retry: retry, CallTimeout: s.patience}), space, false)
	if s.names, err = inspect.New(redis, inspect.Config{Namespace: namespace, CallTimeout: s.patience, Retry: retry}); err != nil {
		return nil, err
	}
	s.search = newSearch(s.names.Cycles)
	s.overview, err = s.names.Overview(inspect.NameFilter{})
	return s, err
}

func (s *source) close() { s.search.close() }

// read makes a reading. If all names in use fit into its pages, all is as of now. Else a walk over the names goes on in the
// next reading, and only the names that somebody waits for are read each time.
func (s *source) read(ctx context.Context) *reading {
	r := &reading{began: time.Now()}
	r.servers = s.ask(ctx)
	for i := range r.servers {
		if about := &r.servers[i]; turnedAway(about.Silent) {
			r.failed(about.address+": version, memory, full and refusing need +info", about.Silent)
		}
	}
	if r.up() {
		s.search.look()
		r.cycles = s.search.found
		r.failed("the search for cycles", s.search.last.err)
		var found reader.Census
		var drained inspect.Page[berth.Drain]
		var failed, unknown error
		var beside sync.WaitGroup // the names: the server may be the silent one
		beside.Go(func() {
			unknown = guard.Run("the reading of drains", nil, func() (err error) {
				drained, err = s.names.Drains(ctx)
				return err
			})
		})
		beside.Go(func() {
			failed = guard.Run("the reading of the swarm", nil, func() (err error) {
				found, err = s.about.Census(ctx, condemnedFor)
				return err
			})
		})
		s.step(ctx, r)
		for _, c := range []*census{s.walked, s.walk} {
			if c != nil {
				r.failed("the names", c.bad...)
			}
		}
		if r.names = s.walked; r.names != nil && !r.names.began.Before(r.began) {
			r.whole, r.waits = len(r.names.bad) == 0, r.names.of
		} else {
			s.contended(ctx, r)
		}
		beside.Wait()
		if r.failed("the swarm", failed); failed == nil {
			r.swarm = &found
		}
		if drained.Partial {
			drained.Problems = append(drained.Problems, errors.New("there are more than are told"))
		}
		if r.failed("the drains", append(drained.Problems, unknown)...); unknown == nil {
			r.drains = newDrains(&drained, s.classes)
		}
		s.search.next()
	}
	r.took = time.Since(r.began)
	return r
}

// ask asks all servers about themselves, side by side: one that is silent takes no time from the others.
func (s *source) ask(ctx context.Context) []server {
	ctx, cancel := context.WithTimeoutCause(ctx, s.patience, errors.New("it has not answered in time"))
	defer cancel()
	nodes := s.redis.Nodes()
	addresses := slices.Sorted(maps.Keys(nodes))
	servers := make([]server, min(len(addresses), serversMost))
	var asked sync.WaitGroup
	for i := range servers {
		asked.Go(func() {
			servers[i].address = addresses[i]
			servers[i].err = guard.Run("the reading of a server", nil, func() (err error) {
				servers[i].About, err = s.about.About(ctx, nodes[addresses[i]])
				return err
			})
		})
	}
	asked.Wait()
	return servers
}

// everything means all names in use, and those of which runs are kept.
var everything = inspect.NameFilter{Kinds: []keyspace.Kind{keyspace.Sem, keyspace.Lock, keyspace.Pool, keyspace.Once}}

// step goes on with the walk over all names that are in use, and those of which runs are kept, until it comes to its end.
func (s *source) step(ctx context.Context, r *reading) {
	if s.walk == nil {
		s.walk, s.cursor = newCensus(), ""
	}
	for range pages {
		page, err := s.names.Names(ctx, everything, s.cursor, reader.Most)
		if err != nil {
			if s.tries++; s.tries == triesMost { // the walk ends with what it has found, if that is anything
				if s.cursor != "" {
					s.walk.bad = append(s.walk.bad, err)
					s.walked = s.walk
				}
				s.walk, s.tries = nil, 0
			}
			r.failed("the names", err)
			return
		}
		// A server that stands still for a moment has the next reading read the page again. One that is known to be silent, or
		// that refuses, must not keep the walk from its end.
		if s.tries++; len(page.Problems) > 0 && s.tries < triesMost && !r.silent() {
			r.failed("the names", page.Problems...)
			return
		}
		s.tries = 0
		inspect.Marked(&page, r.cycles)
		for i := range page.Items {
			n := &page.Items[i]
			s.walk.add(s.classes.class(n.Kind, n.Name), n)
		}
		s.walk.bad = append(s.walk.bad, page.Problems...)
		if s.cursor = page.Next; s.cursor == "" {
			s.walked, s.walk = s.walk, nil
			return
		}
	}
}

// contended reads the names that somebody waits for.
func (s *source) contended(ctx context.Context, r *reading) {
	s.overview.Mark(r.cycles)
	page, err := s.overview.Read(ctx)
	if err != nil {
		r.failed("who waits", err)
		return
	}
	r.failed("who waits", page.Problems...)
	r.left = page.Partial
	r.waits = map[class]*figures{}
	for i := range page.Items {
		if n := &page.Items[i]; n.Live() > 0 {
			figuresOf(r.waits, s.classes.class(n.Kind, n.Name)).waits(n)
		}
	}
}
