package reader

import (
	"strconv"
	"strings"

	"github.com/berth-go/berth"
)

// overlap is how many members a page reads again of the one before it: what leaves the line between two
// trips must not hide one that stays.
const overlap = 16

// cursorOf says that a page begins behind a member of the line.
func cursorOf(m member) string { return number(m.score) + " " + m.name }

// memberOf is the counterpart of cursorOf.
func memberOf(cursor string) (m member, err error) {
	score, name, found := strings.Cut(cursor, " ")
	if m.score, err = strconv.ParseInt(score, 10, 64); err != nil || !found || m.score < 0 {
		return member{}, berth.Invalid("cursor", "%q is none of a page", cursor)
	}
	return member{name, m.score}, nil
}

// before says whether a member stands before another one, or is that.
func (m member) before(other member) bool {
	return m.score < other.score || m.score == other.score && m.name <= other.name
}

// behind are up to so many members that stand behind one, up to a score, and the rank of the first; more says
// whether others follow. What is there the whole time is not missed: what is read begins with one before the page.
func (t *turn) behind(line string, after member, to int64, most int) (page []member, rank int64, more bool, err error) {
	from, err := t.search(line, after)
	if err != nil {
		return nil, 0, false, err
	}
	want, most := most, min(most+overlap+1, Most)
	for back := int64(overlap); ; {
		from = max(from-back, 0)
		var p trip
		ranks := p.ranks(line, from, most)
		if err := t.ask(&p); err != nil {
			return nil, 0, false, err
		}
		all := p.members(ranks)
		if p.err != nil {
			return nil, 0, false, p.err
		}
		if from > 0 && (len(all) == 0 || !all[0].before(after)) { // so many have left before it
			back *= 2
			continue
		}
		more = len(all) == most
		for len(all) > 0 && all[0].before(after) {
			all, from = all[1:], from+1
		}
		for len(all) > 0 && all[len(all)-1].score > to {
			all, more = all[:len(all)-1], false
		}
		if len(all) > want {
			return all[:want], from, true, nil
		} else if len(all) > 0 || !more {
			return all, from, more, nil
		}
		from, back = from+overlap, overlap // so many have come before it
	}
}

// search is the rank of the first member behind one, as it was a moment ago.
func (t *turn) search(line string, after member) (int64, error) {
	var p trip
	low, high := p.add("ZCOUNT", line, "-inf", "("+number(after.score)), p.add("ZCOUNT", line, "-inf", number(after.score))
	rank, score := p.add("ZRANK", line, after.name), p.scores(line, "", after.name)
	if err := t.ask(&p); err != nil {
		return 0, err
	}
	if p.at(score)[0] == after.score {
		return p.int(rank) + 1, p.err
	}
	from, to := p.int(low), p.int(high)
	for p.err == nil && from < to {
		middle := from + (to-from)/2
		var q trip
		ranks := q.ranks(line, middle, 1)
		if err := t.ask(&q); err != nil {
			return 0, err
		}
		if one := q.members(ranks); len(one) > 0 && one[0].before(after) {
			from = middle + 1
		} else {
			to = middle
		}
		p.err = q.err
	}
	return from, p.err
}
