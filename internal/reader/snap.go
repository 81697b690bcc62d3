package reader

import (
	"slices"
	"strings"

	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// snap is the reading of a fat name's snapshot, beside that of its row.
type snap struct {
	*fat
	s      *Snapshot
	claims []string       // that are asked for
	most   int            // how many who wait are read of the line, and of its lanes
	places map[string]int // of the answers

	live, line, apart []member
	rests, leave      []string
	resources, binds  []string // that are wanted, and still to be read
	looked            guess    // what a trip asks for
	used              guess    // what was read
	ranked            []*Place // claims that were asked for, of which it is not known how many stand before them
	ranks             []int    // of the answers that say it
}

// ask asks for what is not in the line.
func (s *snap) ask(p *trip) {
	if s.pool != nil {
		s.places["refresh"] = p.fields(s.state, "", "refresh")
	}
}

// hear takes what the line says, and the answers to ask.
func (s *snap) hear(p *trip) {
	b := &s.bands
	s.s.Known, s.s.Group = true, s.before.group
	s.live, s.line, s.apart = b.live, b.waits, b.apart
	for _, m := range b.damaged {
		s.s.Damaged = append(s.s.Damaged, state.Brief(m.name))
	}
	s.s.LineLeft, s.s.LanesLeft = b.waitsAll-len(s.line), b.apartAll-len(s.apart)
	if s.pool == nil {
		return
	}
	s.s.Items, s.s.Bindings = map[string]Item{}, map[string]state.Binding{}
	s.s.Filled = s.before.counts.Filled
	s.rests, s.leave = namesOf(b.resting, resourceResting), namesOf(b.leaving, resourceLeaving)
	s.s.RestsLeft = b.restingAll - len(s.rests)
	if len(s.leave) == snapLeave {
		s.s.Leaves = state.Instant(b.leaving[snapLeave-1].score - state.Expiries)
	}
	refresh, _, _ := strings.Cut(p.texts(s.places["refresh"])[0], " ")
	s.s.Refresh = moment(parse(refresh))
}

// look asks for the records.
func (s *snap) look(p *trip) {
	holds, waits, apart := claimsOf(s.live), namesOf(s.line, claimPlaced), namesOf(s.apart, claimPlaced)
	s.places["holds"], s.places["scores"] = p.fields(s.state, "c:", holds...), p.scores(s.fat.line, "h:", holds...)
	var fields, ends []string
	for _, claim := range s.claims {
		fields, ends = append(fields, "c:"+claim, "r:"+claim, "q:"+claim), append(ends, state.Hold(claim), "t:"+claim)
	}
	s.places["asked"], s.places["ends"] = p.fields(s.state, "", fields...), p.scores(s.fat.line, "", ends...)
	s.places["waits"] = p.fields(s.state, "c:", waits...)
	s.places["lanes"], s.places["until"] = p.fields(s.state, "c:", apart...), p.fields(s.state, "q:", apart...)
	s.places["held"] = -1
	if s.pool != nil {
		s.places["held"] = p.fields(s.state, "r:", holds...)
		if s.memory != nil {
			s.looked = s.memory.guessed
		}
		s.askItems(p, s.looked)
	}
}

// heed takes the answers to look.
func (s *snap) heed(p *trip) {
	s.heedHolds(p)
	records := p.texts(s.places["waits"])
	s.tellFirsts(s.line, records, s.s.LineLeft > 0)
	s.n.Dead = 0 // all that were read count, not the first of each priority alone
	s.s.Line = s.heedWaits(s.line, records, nil)
	s.s.Lanes = s.heedWaits(s.apart, p.texts(s.places["lanes"]), p.texts(s.places["until"]))
	texts, scores := p.texts(s.places["asked"]), p.at(s.places["ends"])
	for i, claim := range s.claims {
		s.s.Asked[claim] = s.heedAsked(claim, texts[3*i:3*i+3], scores[2*i:2*i+2])
	}
	if s.pool == nil {
		return
	}
	for _, h := range s.s.Holds {
		s.wants(h.Resource)
	}
	for _, w := range s.s.Lanes {
		s.wants(w.Resource)
	}
	for _, key := range slices.Concat(s.rests, s.leave) {
		s.wants(key)
	}
	for key := range s.pool.met {
		s.wants(key)
	}
	for _, e := range s.pool.ended {
		s.wants(e.resource)
	}
	for _, w := range s.s.Line {
		if bind := w.Wants.Bind; bind != "" && !slices.Contains(s.binds, bind) {
			s.binds = append(s.binds, bind)
		}
	}
	s.heedItems(p, s.looked)
}

// wants has the next trip ask for a resource.
func (s *snap) wants(key string) {
	if _, known := s.s.Items[key]; key != "" && !known && !slices.Contains(s.resources, key) {
		s.resources = append(s.resources, key)
	}
}

func (s *snap) heedHolds(p *trip) {
	records, scores, resources := p.texts(s.places["holds"]), p.at(s.places["scores"]), p.texts(s.places["held"])
	for i, claim := range claimsOf(s.live) {
		ends := deadline(scores[i])
		if ends <= s.now || !isHold(records[i]) {
			continue
		}
		h, err := s.held(claim, records[i], ends)
		if err != nil {
			s.s.Damaged = append(s.s.Damaged, claim)
			continue
		}
		h.Called = ends != deadline(s.live[i].score)
		if resources != nil {
			h.Resource = resource(resources[i])
		}
		s.s.Holds = append(s.s.Holds, h)
	}
	if s.kind == keyspace.Lock {
		s.entered()
	}
	s.s.HoldsLeft = max(int(s.fat.live)-len(s.live), 0)
}

// entered puts the entries of a lock's owner in their order. Without a group the first hold is the only one.
func (s *snap) entered() {
	group := s.before.group
	switch {
	case s.before.values.Used <= 0:
		s.s.Holds = nil
		return
	case group == nil:
		s.s.Holds = s.s.Holds[:min(len(s.s.Holds), 1)]
		return
	}
	order := map[string]int{}
	for i, e := range group.Entries {
		if order[e.Claim] = i + 1; e.Fresh {
			order[e.Claim] += len(group.Entries)
		}
	}
	s.s.Holds = slices.DeleteFunc(s.s.Holds, func(h *Held) bool { return order[h.ID] == 0 })
	for _, h := range s.s.Holds {
		h.Fresh = order[h.ID] > len(group.Entries)
	}
	slices.SortFunc(s.s.Holds, func(a, b *Held) int { return order[a.ID] - order[b.ID] })
}

func (s *snap) heedWaits(members []member, records, apart []string) (waits []*Place) {
	for i, m := range members {
		place, claim, ok := state.PlaceOf(m.name)
		if !ok || !state.Waits(records[i]) || apart != nil && elsewhere(m, records[i]) {
			continue
		}
		until := ""
		if apart != nil {
			until = apart[i]
		}
		w, err := s.place(claim, records[i], place, m.score, until)
		if err != nil {
			s.s.Damaged = append(s.s.Damaged, claim)
			continue
		}
		s.n.deadIf(&w.Waiter)
		w.Ahead = slices.IndexFunc(members, func(first member) bool { return apart == nil || first.score == m.score })
		w.Ahead = i - w.Ahead
		waits = append(waits, w)
	}
	return waits
}

// heedAsked is a claim that was asked for, among those that were read or by its own texts and scores.
func (s *snap) heedAsked(claim string, texts []string, scores []int64) *Asked {
	if asked := s.s.Among(claim); asked != nil {
		return asked
	}
	switch record := texts[0]; {
	case record == "":
	case record[0] == '!':
		if scores[1]-tombs > s.now {
			return &Asked{Word: state.Brief(record[1:])}
		}
	case isHold(record):
		ends := deadline(scores[0])
		if h, err := s.held(claim, record, ends); err != nil || ends > s.now {
			h.Resource = resource(texts[1])
			return askedOf(h, nil, err)
		}
	default:
		r, _ := state.ParseRecord(record)
		w, err := s.place(claim, record, r.Place, 0, texts[2])
		asked := askedOf(nil, w, err)
		if err == nil {
			asked.Rank = s.rank(w)
		}
		return asked
	}
	return &Asked{}
}

// rank is how many stand before a claim. Where the line was not read as a whole, the next trip asks.
func (s *snap) rank(w *Place) int {
	name := spot(w)
	for _, members := range [][]member{s.bands.line, s.bands.lanes} {
		if i := slices.IndexFunc(members, func(m member) bool { return m.name == name }); i >= 0 {
			first := 0
			if score := members[i].score; score > state.LastLane {
				first, _ = slices.BinarySearchFunc(members, score, byScore)
			} else {
				w.Lane = int(score)
			}
			return i - first
		}
	}
	if s.asking.whole < 0 {
		s.ranked = append(s.ranked, w)
	}
	return 0
}

// spot is the name of a claim's place in the line.
func spot(w *Place) string { return w.Record.Place + "-" + w.ID }

// tombs is where the scores of tombstones begin; see scripts/state/score.lua.
const tombs = 260 * state.Width

// more says that there is something to look at.
func (s *snap) more() bool { return len(s.resources) > 0 || len(s.binds) > 0 || len(s.ranked) > 0 }

// lookOn asks for resources, bindings, and for where claims stand.
func (s *snap) lookOn(p *trip) {
	s.looked = guess{slices.Clone(s.resources), slices.Clone(s.binds)}
	s.askItems(p, s.looked)
	s.ranks = nil
	var at []string
	for _, w := range s.ranked {
		at = append(at, spot(w))
		s.ranks = append(s.ranks, p.add("ZRANK", s.fat.line, spot(w)))
	}
	s.places["ranked"] = p.scores(s.fat.line, "", at...)
}

// askItems asks for resources, and for bindings.
func (s *snap) askItems(p *trip, of guess) {
	s.places["items"], s.places["own"] = p.fields(s.key(keyspace.ItemsPart), "i", of.resources...), p.fields(s.state, "s:", of.resources...)
	s.places["binds"] = p.fields(s.key(keyspace.BindingsPart), "b", of.binds...)
}

// heedOn takes the answers to lookOn.
func (s *snap) heedOn(p *trip) {
	s.heedItems(p, s.looked)
	s.heedRanks(p)
}

// heedItems takes those of the answers to askItems that are wanted.
func (s *snap) heedItems(p *trip, of guess) {
	texts := p.texts(s.places["binds"])
	for i, name := range of.binds {
		if !slices.Contains(s.binds, name) {
			continue
		}
		s.binds = slices.DeleteFunc(s.binds, func(other string) bool { return other == name })
		s.used.binds = append(s.used.binds, name)
		if b, err := state.ParseBinding(texts[i]); err == nil {
			s.s.Bindings[name] = b
			s.wants(b.Resource)
		}
	}
	settings, _ := state.ParseSettings(s.before.counts.Settings)
	items, owns := p.texts(s.places["items"]), p.texts(s.places["own"])
	for i, key := range of.resources {
		if !slices.Contains(s.resources, key) {
			continue
		}
		s.resources = slices.DeleteFunc(s.resources, func(other string) bool { return other == key })
		s.used.resources = append(s.used.resources, key)
		item, err := state.ParseItem(items[i])
		found := Item{Item: item, Cooldown: max(settings.Cooldown, 0), Absent: items[i] == "", Damaged: err != nil && items[i] != ""}
		if own, err := state.ParseOwn(owns[i]); err == nil && item.Own && own.Cooldown != state.Unset {
			found.Cooldown = own.Cooldown
		}
		s.s.Items[key] = found
		if found.Damaged {
			s.s.Damaged = append(s.s.Damaged, key)
		}
	}
}

// heedRanks takes the places of claims that were asked for. In a lane they count from the lane's first, which a trip of
// its own has to find.
func (s *snap) heedRanks(p *trip) {
	waits, scores := s.ranked, p.at(s.places["ranked"])
	s.ranked = nil
	var before trip
	var apart []*Place
	for i, w := range waits {
		switch lane := scores[i]; {
		case lane == absent:
		case lane <= state.LastLane:
			w.Lane = int(lane)
			s.stands(w, p.int(s.ranks[i]))
		default:
			s.stands(w, p.int(s.ranks[i]))
			before.add("ZCOUNT", s.fat.line, "-inf", "("+number(lane))
			apart = append(apart, w)
		}
	}
	if len(apart) == 0 || p.fail(s.turn.ask(&before)) {
		return
	}
	for i, w := range apart {
		s.stands(w, int64(s.s.Asked[w.ID].Rank)-before.int(i))
	}
	p.fail(before.err)
}

// stands notes how many stand before a claim that was asked for.
func (s *snap) stands(w *Place, rank int64) { s.s.Asked[w.ID].Rank = int(rank) }

// end puts in what a sweep would leave of resources.
func (s *snap) end() {
	if s.pool == nil {
		return
	}
	if s.memory != nil {
		s.memory.guessed = s.used
	}
	for key, k := range s.pool.met {
		if item, known := s.s.Items[key]; known {
			item.Item, item.Unbegun = k.now, k.was.Pending > 0 && k.now.Pending == 0
			item.Absent = item.Absent || k.now.Leaving && len(k.now.Claims) == 0
			s.s.Items[key] = item
		}
	}
}
