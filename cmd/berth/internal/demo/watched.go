package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/berth-go/berth/pkg/embedded"
)

// between is how long there is nothing to see between two rounds of an act.
const between = time.Second

// slow is how much slower than by themselves the acts are played, so that somebody can read what there is to see.
const slow = 4

// Watched plays all acts beside each other on one server, again and again until ctx ends, for somebody who looks at that
// server. Watched prints a line for each round. A viewer's action may spoil a round; then the next round follows.
func Watched(ctx context.Context, opts Options, server *embedded.Server) {
	out := &shared{out: opts.Out}
	opts.Out, opts.Live, opts.Color, opts.Slow = io.Discard, false, false, slow
	var playing sync.WaitGroup
	for _, a := range acts() {
		playing.Go(func() {
			pause := time.NewTicker(between)
			defer pause.Stop()
			for round := 1; ctx.Err() == nil; round++ {
				facts, err := once(ctx, opts, a, server)
				if ctx.Err() == nil {
					out.print(verdict(a.name, round, facts, err))
				}
				pause.Reset(between)
				select {
				case <-pause.C:
				case <-ctx.Done():
				}
			}
		})
	}
	playing.Wait()
}

// once plays an act once.
func once(ctx context.Context, opts Options, a act, server *embedded.Server) ([]fact, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	s := &stage{opts: opts, act: a.name, server: server, paint: paint(false)}
	defer s.clear()
	return a.play(ctx, s)
}

// verdict says what a round has shown.
func verdict(act string, round int, facts []fact, err error) string {
	if err != nil {
		return fmt.Sprintf("%s, round %d: spoilt: %s", act, round, strings.TrimPrefix(err.Error(), "demo: "))
	}
	says := fmt.Sprintf("%s, round %d: all is as promised", act, round)
	for _, f := range facts {
		if !f.ok {
			says = fmt.Sprintf("%s, round %d: not as promised: %s", act, round, f.text)
		}
	}
	return says
}

// shared is where several acts print lines.
type shared struct {
	mu  sync.Mutex
	out io.Writer // guarded by mu
}

func (s *shared) print(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.out, line)
}
