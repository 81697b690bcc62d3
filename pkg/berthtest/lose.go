package berthtest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// Lose makes the server forget one hold: a permit, a lock or an allocation of any node on this
// server. When Lose returns, the handle has ended with berth.ErrLost, and its place has been
// granted to the next in line. (An operator's release would end the handle with
// berth.ErrReleased.) If the hold has ended, if the server does not know it, or during an outage,
// the test ends with a fatal error.
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
	s.forget("Lose", hold.Name(), hold.ID())
	_ = hold.Renew(context.Background()) // what it says, Err says too
	if err := hold.Err(); !errors.Is(err, berth.ErrLost) {
		s.t.Fatalf("berthtest: Lose: the holder has learned something else: %v", err)
	}
}

// LoseAll makes the server forget all holds of a name, for programs whose handles a test cannot
// reach, such as those of Do. The next in line get the places at once. The holders learn of the
// loss, with berth.ErrLost, at their next renewal: within a third of the lease, or of
// Config.Lease if that is shorter. If the name has no holds, the test ends with a fatal error.
func (s *Server) LoseAll(name string) {
	s.t.Helper()
	s.forget("LoseAll", name, "")
}

// patience is how long a call of a test's own may take: no slow machine ends the test.
const patience = time.Minute

// forget releases a claim of a name, "" for all that hold it, behind its holder's back: what
// it had goes where it belongs, and nothing remains that says what became of it. If there
// is none, the test ends.
func (s *Server) forget(what, name, claim string) {
	s.t.Helper()
	s.direct(what, func(ctx context.Context, client rueidis.Client) error {
		f := forgetting{name: name, claim: claim, run: scriptkit.NewRunner(client, scriptkit.Options{CallTimeout: patience})}
		keys, err := client.Do(ctx, client.B().Keys().Pattern("*").Build()).AsStrSlice()
		for _, key := range keys {
			if err == nil {
				err = f.look(ctx, key)
			}
		}
		if err == nil && f.ended == 0 {
			return errors.New("the server does not know the hold")
		}
		return err
	})
}

// forgetting is how claims of a name are forgotten.
type forgetting struct {
	name, claim string
	run         *scriptkit.Runner
	ended       int // how many it has ended
}

// kinds are what the scripts of each kind are called.
var kinds = map[keyspace.Kind]string{keyspace.Sem: "semaphore", keyspace.Lock: "lock", keyspace.Pool: "pool"}

// look ends what the name has in the kind and the namespace of a key, if that is a state of it.
func (f *forgetting) look(ctx context.Context, key string) error {
	prefix, found := strings.CutSuffix(key, ":{"+f.name+"}:"+keyspace.StatePart)
	colon := strings.LastIndexByte(prefix, ':')
	if !found || colon < 0 {
		return nil
	}
	kind := keyspace.Kind(prefix[colon+1:])
	space, err := keyspace.New(prefix[:colon])
	if _, known := kinds[kind]; !known || err != nil {
		return nil //nolint:nilerr // a key of somebody else's
	}
	var holders []berth.Holder
	for holder, err := range reader.New(f.run, space, true).Holders(ctx, kind, f.name) {
		if err != nil {
			return err
		}
		holders = append(holders, holder)
	}
	for _, holder := range holders {
		if f.claim != "" && f.claim != holder.ID {
			continue
		}
		// As its own release does, without a tombstone.
		says := line.Args{Node: holder.Node, Channel: space.Wake(""), Name: f.name, Linger: time.Minute.Milliseconds()}
		args := says.Release(holder.ID, &state.Record{Lease: berth.Forever}, 0)
		released, err := f.call(ctx, space, kind, kinds[kind]+"_release", args...)
		if err != nil {
			return err
		}
		if status := released.Status(); status == "released" {
			f.ended++
		}
	}
	return nil
}

// call runs a script on the keys of the name.
func (f *forgetting) call(ctx context.Context, space keyspace.Space, kind keyspace.Kind, name string, args ...string) (scriptkit.Reply, error) {
	script := composed.Library().Script(name)
	var keys []string
	for _, key := range script.Keys {
		keys = append(keys, space.Key(kind, f.name, key.Name))
	}
	return f.run.Run(ctx, script, scriptkit.Once, keys, args)
}
