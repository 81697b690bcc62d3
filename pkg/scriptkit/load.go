package scriptkit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/redis/rueidis"
)

// Load sends the scripts to every node that the client knows, so that no first
// call has to carry its source. Nothing depends on it: Run sends the source to
// a server that does not know it. Every node is asked once for each script, at
// most CallTimeout each; a node that fails is left after its first error. Nothing is sent
// once ctx has ended.
//
// The error joins one *Error for each node that failed.
func (r *Runner) Load(ctx context.Context, scripts ...*Script) error {
	nodes := r.client.Nodes()
	addresses := slices.Sorted(maps.Keys(nodes))
	problems := make([]error, len(addresses))
	var wg sync.WaitGroup
	for i, address := range addresses {
		wg.Go(func() { problems[i] = r.loadNode(ctx, address, nodes[address], scripts) })
	}
	wg.Wait()
	return errors.Join(problems...)
}

// loadNode loads one node, script by script: a pipeline as long as all of them
// could stand still on a connection without buffers.
func (r *Runner) loadNode(ctx context.Context, address string, node rueidis.Client, scripts []*Script) error {
	for _, s := range scripts {
		if err := r.loadScript(ctx, address, node, s); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) loadScript(ctx context.Context, address string, node rueidis.Client, s *Script) error {
	if ended(ctx) != nil {
		// rueidis would connect under it even so, and fail others who wait for that connection.
		return (&call{runner: r, script: s}).fail(ctx, verdict{repeat: true}, nil)
	}
	what := "SCRIPT LOAD on " + address
	attempt, cancel := Limit(ctx, r.opts.CallTimeout)
	defer cancel()
	sha, err := node.Do(attempt, node.B().ScriptLoad().Script(s.Source()).Build()).ToString()
	var answer *rueidis.RedisError
	switch {
	case err == nil && sha == s.SHA:
		r.sent.Store(s, nil)
		return nil
	case err == nil:
		return &Error{Script: s.Name, Attempts: 1, Err: fmt.Errorf("%s: the server says its SHA is %s instead of %s", what, sha, s.SHA)}
	case errors.As(err, &answer):
		err = r.explainAnswer(ctx, s, nil, answer)
	}
	failure := failed(attempt, what, err)
	failure.Script = s.Name
	return failure
}
