package reader

import (
	"errors"
	"slices"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/scriptkit"
)

// Memory is what whoever reads one name again and again knows from the last time, so that a reading asks for less. But for
// Replica and Server it is about how to ask alone: where a name is not what it was, that is found, and it is read at
// once as one of which nothing is known. The zero value knows nothing. It is not safe for concurrent use.
type Memory struct {
	// Greet has the next reading ask who answers, and Ask what the server says of itself. Until then Replica and Server are what
	// they were; Server is nil where it is not known.
	Greet, Ask bool
	Replica    bool
	Server     *Server
	// Repeated says that an attempt of the last reading failed: another server may have answered, so who answers and what it
	// says are to be asked anew.
	Repeated bool

	form    Form
	guessed guess
}

// Form is what is known of a name from the last time, of how it is stored alone: a reading that goes by it asks for less.
type Form struct {
	fat   bool
	plain bool  // the next reading asks for each band of the line by itself, when it knows the time
	apart int   // for how many more readings the bands of the line are asked for one by one
	many  bool  // there are more holds than one range has
	lane  int64 // the last one of the line, 0 for unknown
}

// guess is what a pool's reading asks for at once, of what it may be led to.
type guess struct{ resources, binds []string }

// A line with up to wholeLine members, for a row wholeRow, is read as a whole. One that has more is not for apartFor readings.
const wholeLine, wholeRow, apartFor = 500, 40, 30

// errMore says that a name has more than fits into what it was asked.
var errMore = errors.New("berth: there is more than was asked for")

// knows says that a turn goes by what is known of the name.
func (t *turn) knows() bool { return t.form != nil && t.form.fat }

// forget has the name be read as one of which nothing is known.
func (t *turn) forget() {
	if t.form != nil {
		t.form.fat, t.form.plain = false, true
	}
	if t.memory != nil {
		t.memory.guessed = guess{}
	}
}

// from says whom the next trip asks, and what for.
func (t *turn) from(node rueidis.Client) scriptkit.From {
	from := scriptkit.From{Node: node, Primary: t.decide}
	if m := t.memory; m != nil {
		from.Unasked, from.Untimed = !m.Greet && !t.decide, t.now > 0
	}
	return from
}

// brief makes a trip of a turn that remembers.
func (t *turn) brief(p *trip) error {
	m, commands := t.memory, p.sent()
	ask := m.Ask
	if ask {
		commands = append(slices.Clip(commands), info)
	}
	if !t.yield(commands) {
		return errLeft
	}
	if m.Greet = false; ask {
		m.Ask, m.Server = false, serverOf(t.results[len(p.commands)])
	}
	p.hear(t.results[:len(p.commands)])
	return nil
}
