package berthtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Lose has the server forget a hold, and only that one, and the holder learn of it: when Lose
// returns, the handle has ended with berth.ErrLost, and the next in line has been granted what
// it held. (An operator's release would end it with berth.ErrReleased.) The hold is a semaphore's
// permit, a lock or an allocation, of any client of this server. A hold that has ended,
// or that the server does not know, ends the test with a fatal error, and so does an
// outage, in which nobody can learn of anything.
func (s *Server) Lose(hold berth.Hold) {
	s.t.Helper()
	s.mu.Lock()
	away := s.cut+s.stuck > 0
	s.mu.Unlock()
	if away {
		s.t.Fatal("berthtest: Lose: the holder cannot learn of it during an outage")
	}
	if err := hold.Err(); err != nil {
		s.t.Fatalf("berthtest: Lose: the hold has ended already: %v", err)
	}
	s.direct("Lose", func(ctx context.Context, client rueidis.Client) error {
		return forget(ctx, client, hold)
	})
	_ = hold.Renew(context.Background()) // what it says, Err says too
	if err := hold.Err(); !errors.Is(err, berth.ErrLost) {
		s.t.Fatalf("berthtest: Lose: the holder has learned something else: %v", err)
	}
}

// kinds are what the scripts of each kind are called, and what its release has behind the
// arguments that all have.
var kinds = map[keyspace.Kind]struct {
	scripts string
	more    func(berth.Hold) []string
}{
	keyspace.Sem:  {"semaphore", func(berth.Hold) []string { return nil }},
	keyspace.Lock: {"lock", func(berth.Hold) []string { return nil }},
	keyspace.Pool: {"pool", func(h berth.Hold) []string { return []string{"0", "", strconv.FormatInt(h.Fence(), 10)} }},
}

// forget releases a hold behind its holder's back: what its claim had goes where it belongs,
// and nothing remains that says what became of it. The claim's id is random, so that it
// is found in one name alone, whatever its kind and its namespace.
func forget(ctx context.Context, client rueidis.Client, hold berth.Hold) error {
	keys, err := client.Do(ctx, client.B().Keys().Pattern("*").Build()).AsStrSlice()
	if err != nil {
		return err
	}
	for _, key := range keys {
		prefix, found := strings.CutSuffix(key, ":{"+hold.Name()+"}:"+keyspace.StatePart)
		colon := strings.LastIndexByte(prefix, ':')
		if !found || colon < 0 {
			continue
		}
		kind := keyspace.Kind(prefix[colon+1:])
		space, err := keyspace.New(prefix[:colon])
		if _, known := kinds[kind]; !known || err != nil {
			continue
		}
		if released, err := release(ctx, client, space, kind, hold); released || err != nil {
			return err
		}
	}
	return errors.New("the server does not know the hold")
}

// release runs the script that the holder's release would, if the name has the hold.
func release(ctx context.Context, client rueidis.Client, space keyspace.Space, kind keyspace.Kind, hold berth.Hold) (bool, error) {
	node, err := nodeOf(ctx, client, space.State(kind, hold.Name()), hold.ID())
	if err != nil {
		return false, err
	}
	of := kinds[kind]
	script := line.Library().Script(of.scripts + "_release")
	var keys []string
	for _, key := range script.Header.Keys {
		keys = append(keys, space.Key(kind, hold.Name(), key.Name))
	}
	const linger, tombstone = "60000", "0"
	args := append([]string{linger, space.Wake(""), hold.Name(), node, hold.ID(), tombstone}, of.more(hold)...)
	r, err := scriptkit.NewRunner(client, scriptkit.Options{}).Run(ctx, script, scriptkit.Once, keys, args)
	if err != nil {
		return false, err
	}
	switch r.Status() {
	case "released":
		return true, nil
	case "not_held":
		return false, nil
	}
	return false, fmt.Errorf("the server says %q", r.Status())
}

// nodeOf is the node that has a claim: that of its record, else the one that its id begins
// with, as long as no other has taken it up.
func nodeOf(ctx context.Context, client rueidis.Client, state, claim string) (string, error) {
	node, _, _ := strings.Cut(claim, ".")
	kind, err := client.Do(ctx, client.B().Type().Key(state).Build()).ToString()
	if err != nil || kind != "hash" {
		return node, err
	}
	text, err := client.Do(ctx, client.B().Hget().Key(state).Field("c:"+claim).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return node, nil
	} else if err != nil {
		return "", err
	}
	record, err := line.ParseRecord(text)
	return record.Node, err
}
