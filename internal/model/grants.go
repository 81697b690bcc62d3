package model

import (
	"fmt"
	"math"
	"slices"

	"pgregory.net/rapid"
)

// grants checks what was granted since the last check: fences rise, within the
// capacity, and in the order of the line.
func (m *machine) grants(t *rapid.T, v *view) {
	fence := map[*claim]int64{}
	var news []*claim
	for _, c := range m.claims {
		if c.phase > waiting || c.id == "" {
			continue
		}
		if _, ok := v.holds[c.id]; ok {
			fence[c] = v.records[c.id].Fence
		} else if c.back && c.got != nil {
			fence[c] = c.got.Fence() // it has ended since, too
		} else {
			continue
		}
		news = append(news, c)
	}
	slices.SortFunc(news, func(a, b *claim) int { return int(fence[a] - fence[b]) })
	room := max(m.capacity, m.before)
	if used := v.used(math.MinInt64); used > room && (len(news) > 0 || used > m.last.used(math.MinInt64)) {
		t.Fatalf("%d of %d held after a grant", used, room)
	}
	for i, c := range news {
		r, there := v.records[c.id]
		past := !m.Exact && !there // its acquire returned long after the grant, maybe behind newer grants
		if fence[c] <= m.fence && (!past || fence[c] <= c.above) {
			t.Fatalf("fence %d after %d", fence[c], m.fence)
		}
		m.fence = max(m.fence, fence[c])
		if past {
			continue
		}
		m.pause.holdsBack(t, c, r)
		if there && c.phase == asking {
			c.place = place(r.Priority, r.Ticket)
		}
		for _, w := range m.claims {
			late := slices.Contains(news[i+1:], w)
			if w.phase != waiting || !late && (v.alive[w.id] <= v.now || slices.Contains(news, w)) {
				continue
			}
			if w.place < c.place && m.lived(w, r.Granted.UnixMilli()) && !m.excused(w) && !m.excused(c) {
				t.Fatalf("%s was granted before %s, which lived and stood ahead of it", c.id, w.id)
			}
		}
	}
	for _, c := range news {
		if _, there := v.records[c.id]; !there && c.forgot { // it was granted between the look and the flush
			c.permit = c.got
			m.take(c)
			continue
		}
		c.phase = held
		if r, ok := v.records[c.id]; ok && !c.fixed {
			c.begin(r.Granted.UnixMilli())
		} else if !ok {
			if m.Exact && !c.never() && c.opts.MaxHold == 0 {
				t.Fatalf("%s was granted, and has lost its hold", c.id)
			}
			c.ends, c.fixed = v.now, true
		}
	}
}

// lived says whether a claim that waits lived at that time. In real time only the last look proves it: after
// the deadline that was seen then, the claim may have been dropped and put back, and its process not know yet.
func (m *machine) lived(w *claim, at int64) bool { return m.Exact || at < m.last.alive[w.id] }

func place(priority int, ticket int64) string {
	return fmt.Sprintf("%03d %013d", 2*(127-priority), ticket)
}

// begin sets the deadlines of a grant whose claimant has confirmed it.
func (c *claim) begin(granted int64) {
	if c.opts.MaxHold > 0 {
		c.limit = granted + c.opts.MaxHold.Milliseconds()
	}
	c.extend(granted)
	c.fixed = c.never()
}
