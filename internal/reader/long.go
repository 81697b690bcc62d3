package reader

import (
	"sync"
	"time"

	"github.com/berth-go/berth/internal/state"
)

const (
	// longFor is for how long a field that had more than any text of Berth is not asked for again, longMost how many such
	// fields are remembered.
	longFor, longMost = time.Minute, 1000
)

// long are the fields that had more than any text of Berth. Such a text crosses the wire, and costs its size in memory, each
// time that it is asked for; who looks asks each second. A reader that decides asks always.
type long struct {
	mu     sync.Mutex
	fields map[fieldOf]met // guarded by mu
}

// fieldOf is a field of a key; "" stands for the text of a key that has no fields.
type fieldOf struct{ key, field string }

// met is what is left of such a text, and when it was read.
type met struct {
	letter string
	at     time.Time
}

func (l *long) note(key, field, letter string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fields == nil || len(l.fields) >= longMost {
		l.fields = map[fieldOf]met{}
	}
	l.fields[fieldOf{key, field}] = met{letter, time.Now()}
}

// whole is the text of a key that has one text, of which only the first letter is left if it is longer than may be.
func (l *long) whole(key, text string) string {
	short := state.Bounded(text)
	if len(short) < len(text) {
		l.note(key, "", short)
	}
	return short
}

// any says that there are some.
func (l *long) any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.fields) > 0
}

func (l *long) letter(key, field string) (letter string, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, known := l.fields[fieldOf{key, field}]
	return m.letter, known && time.Since(m.at) < longFor
}

// spare leaves the fields out that are known to be long: what is left of them is answered in their place.
func (p *trip) spare(l *long) {
	if p.long = l; !l.any() {
		return
	}
	for i := range p.commands {
		c := &p.commands[i]
		if c.Verb[0] != "HMGET" {
			continue
		}
		var kept, letters []string
		at := make([]int, len(c.Args))
		for n, arg := range c.Args {
			if letter, known := l.letter(c.Keys[0], arg); known {
				at[n], letters = -1-len(letters), append(letters, letter)
			} else {
				kept, at[n] = append(kept, arg), len(kept)
			}
		}
		if len(letters) == 0 || len(kept) == 0 {
			continue
		}
		c.Args = kept
		for j := range p.parts {
			if part := &p.parts[j]; part.command == i {
				part.letters = letters
				for n, element := range part.elements {
					part.elements[n] = at[element]
				}
			}
		}
	}
}

// bounded is a text of an answer, of which only the first letter is left if it is longer than may be.
func (p *trip) bounded(of part, n int, text string) string {
	short := state.Bounded(text)
	if len(short) == len(text) || p.long == nil {
		return short
	}
	switch c := p.commands[of.command]; {
	case c.Verb[0] == "MGET":
		p.long.note(c.Keys[n], "", short)
	case c.Verb[0] == "HMGET" && of.elements != nil:
		p.long.note(c.Keys[0], c.Args[of.elements[n]], short)
	}
	return short
}
