package rolling

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/tools/compose"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/test/harness"
)

// kindsOf says on whose names a script runs, by the beginning of its name.
var kindsOf = map[string][]keyspace.Kind{
	"semaphore": {keyspace.Sem}, "lock": {keyspace.Lock}, "pool": {keyspace.Pool}, "swarm": {keyspace.Swarm},
	"fence": {keyspace.Fence}, "once": {keyspace.Once},
	"claim": {keyspace.Sem, keyspace.Lock}, "thin": {keyspace.Sem, keyspace.Lock},
}

// fitting is what makes each script write on a name that furnish has made, where the
// usual values do not. Tickets and fences are filled in.
var fitting = map[string]with{
	"lock_extend":             {},
	"lock_force_release":      {of: map[string]string{"claim id": "a.1", "node": ""}},
	"lock_release":            {of: map[string]string{"claim id": "a.1", "node": "a"}},
	"lock_renew":              {of: map[string]string{"node": "a"}, groups: [][]string{{"a.1", "detach"}}},
	"lock_requeue":            {of: map[string]string{"claim id": "b.3", "ticket that it has": "ticket"}},
	"lock_restore":            {groups: [][]string{{"b.7", "", ""}}},
	"lock_resume":             {of: map[string]string{"claim id": "a.2"}},
	"lock_want":               {of: map[string]string{"claim id": "a.1", "node": ""}},
	"pool_add":                {groups: [][]string{{"r9"}}},
	"pool_expire":             {of: map[string]string{"resource": "r1"}},
	"pool_force_release":      {of: map[string]string{"claim id": "a.1", "node": ""}},
	"pool_mend":               {groups: [][]string{{"r8", ""}}},
	"pool_release":            {of: map[string]string{"claim id": "a.1", "node": "a"}},
	"pool_remove":             {groups: [][]string{{"r1"}}},
	"pool_renew":              {of: map[string]string{"node": "a"}, groups: [][]string{{"a.1", "detach"}}},
	"pool_restore":            {groups: [][]string{{"b.7", "", ""}}},
	"pool_resume":             {of: map[string]string{"claim id": "a.2"}},
	"pool_swap":               {of: map[string]string{"claim id": "a.1", "node": "a", "fence that it has": "fence"}},
	"pool_want":               {of: map[string]string{"claim id": "a.1", "node": ""}},
	"semaphore_force_release": {of: map[string]string{"claim id": "a.1", "node": ""}},
	"semaphore_release":       {of: map[string]string{"claim id": "a.1", "node": "a"}},
	"semaphore_renew":         {of: map[string]string{"node": "a"}, groups: [][]string{{"a.1", "detach"}}},
	"semaphore_resize":        {of: map[string]string{"capacity": "7"}},
	"semaphore_restore":       {groups: [][]string{{"b.7", "", ""}}},
	"semaphore_resume":        {of: map[string]string{"claim id": "a.2"}},
	"semaphore_want":          {of: map[string]string{"claim id": "a.1", "node": ""}},
	"swarm_condemn":           {of: map[string]string{"node": "late"}},
	"swarm_expect":            {groups: [][]string{{"lost", "60000", "label"}}},
	"swarm_leave":             {of: map[string]string{"node": "a"}},
	"fence_admit":             {of: map[string]string{"fence": "9"}},
	"once_begin":              {of: map[string]string{"fence of the hold": "9"}},
	"once_end":                {of: map[string]string{"fence of the hold": "7"}},
	"fence_forget":            {of: map[string]string{"fence": "9"}},
}

// furnish fills the name: a.1 and a.2 hold, a.2 is detached, b.3 waits, and the life
// of b.5, which waits ahead of it, is over. Of a pool the resource r8 is damaged, and the settings allow
// two sharers, which its other resources do not have yet.
func furnish(s *site) (ticket, fence string) {
	s.Helper()
	hold := func(claim string) with {
		return with{of: map[string]string{"claim id": claim, "node": "a", "how": "work queued 0 o"}}
	}
	acquire := map[keyspace.Kind]string{
		keyspace.Sem: "semaphore_acquire", keyspace.Lock: "lock_acquire", keyspace.Pool: "pool_acquire",
	}[s.kind]
	switch s.kind {
	case keyspace.Swarm:
		s.call("swarm_probe", hold("a.1"))
		s.call("swarm_probe", with{of: map[string]string{"node": "late", "the node's own zombie limit": "1"}})
		s.outlast()
		return "", ""
	case keyspace.Fence:
		s.call("fence_admit", with{of: map[string]string{"fence": "7"}})
		return "", ""
	case keyspace.Once:
		s.call("once_begin", with{})
		return "", ""
	case keyspace.Pool:
		s.call("pool_add", with{groups: [][]string{{"r1"}, {"r2"}}})
		reply := s.call("pool_set", with{of: map[string]string{
			"resource": "", "words of pool/settings: policy to hold of a pool, cooldown to bindfor of a resource": ". . 2 . . .",
		}})
		require.Equal(s, "set", reply.Status())
		s.do("HSET", s.space.Key(s.kind, s.name, keyspace.ItemsPart), "ir8", "damaged")
	}
	first := hold("a.1")
	first.of["capacity"] = "2"
	reply := s.call(acquire, first)
	require.Equal(s, "granted", reply.Status())
	fence = reply.Str(2)
	again := s.call(acquire, hold("a.2"))
	require.Contains(s, []string{"granted", "reentered"}, again.Status())
	renew := strings.Replace(acquire, "acquire", "renew", 1)
	s.call(renew, with{of: map[string]string{"node": "a"}, groups: [][]string{{"a.2", "detach"}}})
	reply = s.call(acquire, with{of: map[string]string{"claim id": "b.3"}})
	require.Equal(s, "queued", reply.Status())
	ticket = reply.Str(1)
	dead := terms(s.kind, time.Millisecond)
	reply = s.call(acquire, with{of: map[string]string{"claim id": "b.5", "lane, see line/place": "000", "fixed terms of the record, see state/record": dead}})
	require.Equal(s, "queued", reply.Status())
	s.outlast()
	return ticket, fence
}

// outlast returns when the server's clock has left this millisecond and the next.
func (s *site) outlast() {
	s.Helper()
	now := func() int64 {
		parts, err := s.do("TIME").AsIntSlice()
		require.NoError(s, err)
		return parts[0]*1000 + parts[1]/1000
	}
	for begun := now(); now() < begun+3; { //nolint:revive // each look is a round trip
	}
}

// given is what fits the script on a name with that ticket and fence.
func given(script *compose.Script, s *site, ticket, fence string) with {
	w := with{of: map[string]string{}}
	for name, value := range fitting[script.Name].of {
		w.of[name] = strings.NewReplacer("ticket", ticket, "fence", fence).Replace(value)
	}
	for _, group := range fitting[script.Name].groups {
		if strings.HasSuffix(script.Name, "_restore") {
			group = []string{group[0], "254 " + ticket, "w b " + ticket + " 0 0 0 " + terms(s.kind, time.Minute)}
		}
		w.groups = append(w.groups, group)
	}
	return w
}

// A release that meets the data of a newer one answers so and writes nothing: each of
// its scripts, on a name on which the same call does write while the format is its own.
func TestANewerFormatIsRefusedWithoutAWrite(t *testing.T) {
	t.Parallel()
	redis := listed(t)
	for _, r := range releases(t) {
		for _, script := range r.scripts {
			if script.Name == "waits_note" || script.Name == "notice_set" {
				continue // no number: the registry is a hint, and of a notice each reader heeds the fields that it knows
			}
			kinds := kindsOf[strings.SplitN(script.Name, "_", 2)[0]]
			require.NotEmpty(t, kinds, "whose names does %s run on?", script.Name)
			for _, kind := range kinds {
				t.Run(r.version+"/"+script.Name+"/"+string(kind), func(t *testing.T) {
					thin := strings.HasPrefix(script.Name, "thin")
					if !thin {
						refuses(newSite(t, r, redis, kind), script)
					}
					if kind == keyspace.Sem || kind == keyspace.Lock {
						refusesThin(newSite(t, r, redis, kind), script, thin)
					}
				})
			}
		}
	}
}

// listed is a client of a server whose hashes are lists: one that is a table may change its order by being read.
func listed(t *testing.T) rueidis.Client {
	t.Helper()
	return harness.Start(t, "--hash-max-listpack-value", "65536", "--zset-max-listpack-value", "65536").Client(t)
}

func refuses(s *site, script *compose.Script) {
	s.Helper()
	ticket, fence := furnish(s)
	w := given(script, s, ticket, fence)
	state, own := s.space.State(s.kind, s.name), "1"
	field, newer, number := "fmt", "2", "2"
	if s.kind == keyspace.Fence {
		field, own, newer = "fence", "7", "2:7" // a guard has no format number: what is no fence is newer
	} else if values, err := s.do("HGET", state, "v").ToString(); err == nil {
		kept, rest, _ := strings.Cut(values, " ")
		n, err := strconv.Atoi(kept)
		require.NoError(s, err)
		number = strconv.Itoa(n + 1)
		field, own, newer = "v", values, number+" "+rest
	}

	s.do("HSET", state, field, newer)
	before := s.everything()
	require.NotEmpty(s, before)
	reply := s.call(script.Name, w)
	require.Equal(s, "incompatible", reply.Status())
	if s.kind != keyspace.Fence {
		require.Equal(s, number, reply.Str(1), "the format that it met")
	}
	require.Equal(s, before, s.everything(), "nothing was written")

	// The same call on the same name, with its own format: it would have written.
	s.do("HSET", state, field, own)
	before = s.everything()
	reply = s.call(script.Name, w)
	require.NotEqual(s, "incompatible", reply.Status())
	if reads := strings.HasPrefix(script.Declares.Replay, "reads only"); reads {
		require.Equal(s, before, s.everything(), "a script that only reads")
	} else {
		require.NotEqual(s, before, s.everything(), "the call would have written: %s", reply.Status())
	}
}

// refusesThin has the script meet a thin name of a newer release: held, and idle. The
// scripts of thin names leave it to the general ones to say what it is.
func refusesThin(s *site, script *compose.Script, thin bool) {
	s.Helper()
	const fence = "1700000000000000"
	held := fence + " 1700000000000 b.9 " + terms(s.kind, time.Minute)
	state, w := s.space.State(s.kind, s.name), given(script, s, "1700000000000", fence)
	if thin {
		w = with{}
	}
	for what, text := range map[string]string{"held": held, "idle": fence} {
		s.do("SET", state, "f3 "+text, "PX", "60000")
		before := s.everything()
		reply := s.call(script.Name, w)
		if thin {
			require.Equal(s, "fat", reply.Status(), what)
		} else {
			require.Equal(s, "incompatible", reply.Status(), what)
			require.Equal(s, "3", reply.Str(1), "the format that it met, %s", what)
		}
		require.Equal(s, before, s.everything(), "nothing was written, %s", what)
	}
	if thin { // the same call on a name of its own format writes
		s.do("DEL", state)
		s.call("thin_acquire", w)
		if script.Name != "thin_acquire" {
			reply := s.call(script.Name, w)
			require.NotEqual(s, "fat", reply.Status())
		}
	}
}
