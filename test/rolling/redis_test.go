package rolling

import (
	"context"
	"strconv"
	"sync"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/scriptkit"
)

// older is a client whose scripts are those of another release: each of today's that
// it is given to run is sent as the other release has it.
type older struct {
	rueidis.Client
	swap *swap
}

// swap knows the scripts of a release by those of today that they stand for.
type swap struct {
	bySHA, bySource map[string]*scriptkit.Script

	// keep says that a call is sent as today's; nil for none. With it, the scripts of
	// the release must have been loaded: an EVAL is left as it is.
	keep func(script string) bool

	mu  sync.Mutex
	ran map[string]int // guarded by mu: how often each script was sent
}

func newSwap(from, to *scriptkit.Library) *swap {
	s := &swap{
		bySHA: map[string]*scriptkit.Script{}, bySource: map[string]*scriptkit.Script{}, ran: map[string]int{},
	}
	for _, script := range from.Scripts() {
		if other := find(to, script.Name); other != nil {
			s.bySHA[script.SHA], s.bySource[script.Source()] = other, other
		}
	}
	return s
}

// client puts a client of today back to the release.
func (s *swap) client(redis rueidis.Client) rueidis.Client { return &older{redis, s} }

// count is how many calls of a script were sent as the release has it.
func (s *swap) count(script string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ran[script]
}

// total is how many calls were sent as the release has them.
func (s *swap) total() (calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.ran {
		calls += n
	}
	return calls
}

func (s *swap) note(script string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran[script]++
}

// Do runs a command; a script is the release's own.
func (c *older) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	words := command.Commands()
	if len(words) < 3 {
		return c.Client.Do(ctx, command)
	}
	bySHA, bySource := c.swap.bySHA[words[1]], c.swap.bySource[words[1]]
	keys, err := strconv.Atoi(words[2])
	switch {
	case err != nil:
	case words[0] == "EVALSHA" && bySHA != nil && (c.swap.keep == nil || !c.swap.keep(bySHA.Name)):
		c.swap.note(bySHA.Name)
		command = c.B().Evalsha().Sha1(bySHA.SHA).Numkeys(int64(keys)).Key(words[3 : 3+keys]...).Arg(words[3+keys:]...).Build()
	case words[0] == "EVAL" && bySource != nil && (c.swap.keep == nil || !c.swap.keep(bySource.Name)):
		c.swap.note(bySource.Name)
		command = c.B().Eval().Script(bySource.Source()).Numkeys(int64(keys)).Key(words[3 : 3+keys]...).Arg(words[3+keys:]...).Build()
	}
	return c.Client.Do(ctx, command)
}
