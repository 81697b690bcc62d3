package scriptkit

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/internal/pace"
)

// Call is one call of RunMany.
type Call struct {
	Script     *Script
	Keys, Args []string
}

// pipelined is how many calls go in one pipeline at the most. Their answers come
// together, and what else is sent on that connection meanwhile waits behind them.
const pipelined = 50

// RunMany makes one attempt of each call, as Run does in mode Once, and gives answered
// what Run would return, with the call's index. The calls are sent in pipelines, each of
// at most 50 calls and, in Redis Cluster, for one node. The calls of a pipeline are
// answered together, and wait for no other pipeline. They fail one by one: an error, or an
// EVAL where the server does not know the script, is that call's alone.
//
// RunMany returns when all have been answered. answered is called once for each call,
// and from several goroutines at a time; what it takes, the next call of its pipeline waits.
func (r *Runner) RunMany(ctx context.Context, calls []Call, answered func(i int, reply Reply, err error)) {
	all := make([]*sent, 0, len(calls))
	for i, c := range calls {
		if err := c.Script.checkCounts(len(c.Keys), len(c.Args)); err != nil {
			answered(i, Reply{}, &Error{Script: c.Script.Name, Keys: c.Keys, Err: err})
			continue
		}
		all = append(all, &sent{
			call: call{runner: r, script: c.Script, mode: Once, keys: c.Keys, pace: pace.Of(r.opts.Retry)},
			args: c.Args, answered: func(reply Reply, err error) { answered(i, reply, err) },
		})
	}
	var others sync.WaitGroup
	defer others.Wait()
	pipelines := r.pipelines(ctx, all, &others)
	for i, p := range pipelines {
		if i < len(pipelines)-1 {
			others.Go(func() { r.send(ctx, p) })
		} else {
			r.send(ctx, p)
		}
	}
}

// sent is one call of RunMany.
type sent struct {
	call
	args     []string
	answered func(Reply, error)
	command  rueidis.Completed // what is sent next
	node     int               // that runs it, as far as is known
}

// pipelines divides calls. In Redis Cluster a pipeline for several nodes would wait for the
// slowest of them, so each has the calls for one; see owners. What is to be learned of the
// nodes is learned among others.
func (r *Runner) pipelines(ctx context.Context, all []*sent, others *sync.WaitGroup) [][]*sent {
	for _, s := range all {
		s.command = s.build(false, s.args)
	}
	if len(all) > 1 && r.client.Mode() == rueidis.ClientModeCluster {
		if r.owners.outdated(time.Since(r.made)) {
			others.Go(func() { r.owners.learn(ctx, r) })
		}
		nodes := r.owners.known()
		for _, s := range all {
			s.node = nodes.of(s.command.Slot())
		}
		slices.SortStableFunc(all, func(a, b *sent) int { return cmp.Compare(a.node, b.node) })
	}
	var pipelines [][]*sent
	for begin, end := 0, 0; begin < len(all); begin = end {
		for end = begin + 1; end < len(all) && end < begin+pipelined && all[end].goesWith(all[begin]); {
			end++
		}
		pipelines = append(pipelines, all[begin:end])
	}
	return pipelines
}

// goesWith reports whether two calls may go in one pipeline. rueidis panics if there is one
// without keys in a pipeline of several slots.
func (s *sent) goesWith(other *sent) bool {
	return s.node == other.node && len(s.keys) > 0 && len(other.keys) > 0
}

// send sends a pipeline. Of those calls whose script the server does not know it sends
// another one, with the sources.
func (r *Runner) send(ctx context.Context, pipeline []*sent) {
	now := time.Now()
	if ended(ctx) != nil { // so nothing is sent, and nothing may run
		for _, s := range pipeline {
			s.answered(Reply{}, s.fail(ctx, verdict{repeat: true}, nil))
		}
		return
	}
	attempt, cancel := pipeline[0].limit(ctx, now)
	defer cancel()
	var failed []func()
	for sourced := false; len(pipeline) > 0; sourced = true {
		var unknown []*sent
		for i, result := range r.do(attempt, pipeline) {
			s := pipeline[i]
			switch {
			case !sourced && isNoScript(result):
				s.command = s.build(true, s.args)
				unknown = append(unknown, s)
			case result.Error() != nil: // to explain it may take a while
				failed = append(failed, func() { s.take(ctx, now, result) })
			default:
				s.take(ctx, now, result)
			}
		}
		pipeline = unknown
	}
	for _, take := range failed {
		take()
	}
}

// do sends the commands of calls, one alone in the shorter way that rueidis has for it.
func (r *Runner) do(ctx context.Context, pipeline []*sent) []rueidis.RedisResult {
	if len(pipeline) == 1 {
		return []rueidis.RedisResult{r.client.Do(ctx, pipeline[0].command)}
	}
	commands := make([]rueidis.Completed, len(pipeline))
	for i, s := range pipeline {
		commands[i] = s.command
	}
	return multi(ctx, r.client, commands)
}

// undated is a context that does not tell its deadline.
type undated struct{ context.Context }

func (undated) Deadline() (time.Time, bool) { return time.Time{}, false }

// take gives the caller the result of the attempt that started at now.
func (s *sent) take(ctx context.Context, now time.Time, result rueidis.RedisResult) {
	reply, _, err := s.settle(ctx, now, result)
	s.answered(reply, err)
}
