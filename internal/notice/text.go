package notice

import (
	"strconv"
	"strings"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
)

// The fields of a notice, as scripts/notice_set.lua has them, and the words of a drain.
const (
	// pause begins the field of the pause of all names of a kind.
	pause = "pause:"
	// Node begins the field of a drain of a node: its id follows.
	Node = "n:"
	// Label begins the field of a drain of a label.
	Label = "l:"
	// Drain is what the field of a drain says; the reason stands behind it, if there is one.
	Drain = "drain"
	// Stop is what it says when the drain is over.
	Stop = "stop"
)

// Pause is the field of the pause of all names of a kind.
func Pause(kind keyspace.Kind) string { return pause + string(kind) }

// Field is what one field of a notice says.
type Field struct {
	// Number is greater than that of each older text; 0 of a field that is not there.
	Number int64
	// Until is when a pause or a drain ends, in ms of the server's clock; 0 where it was ended, and of a drain without an end.
	Until int64
	// What is the reason of a pause; of a drain Drain, with its reason, or Stop.
	What string
	// Damaged says that Berth has not written the text: of the rest at most Number is known.
	Damaged bool
}

// digits is how many digits a number has at the most: scripts reckon exactly with so many.
const digits = 15

// Read reads the text of a field, "" for one that is not there.
func Read(text string) Field {
	if text == "" {
		return Field{}
	}
	words := strings.SplitN(text, " ", 4)
	if len(words) < 4 {
		return Field{Damaged: true}
	}
	number, fits := parse(words[0])
	if !fits {
		return Field{Damaged: true}
	}
	until, fits := parse(words[2])
	if !fits {
		return Field{Number: number, Damaged: true}
	}
	return Field{Number: number, Until: until, What: words[3]}
}

// Drains says whether the field of a drain has processes drain at a moment (ms of the server's clock), and why.
func (f Field) Drains(now int64) (reason string, drains bool) {
	word, reason, _ := strings.Cut(f.What, " ")
	return reason, word == Drain && (f.Until == 0 || f.Until > now)
}

// Target is whom the field of a drain means, the zero value for a field of something else.
func Target(field string) (t berth.DrainTarget) {
	if label, is := strings.CutPrefix(field, Label); is {
		t.Label = label
	} else if node, is := strings.CutPrefix(field, Node); is {
		t.Node = node
	}
	return t
}

func parse(word string) (n int64, fits bool) {
	n, err := strconv.ParseInt(word, 10, 64)
	return n, err == nil && n >= 0 && len(word) <= digits
}
