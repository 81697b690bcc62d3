package notice

import (
	"strconv"
	"strings"
)

// The fields of a notice, as scripts/notice_set.lua has them, and the words of a drain.
const (
	// Pause is the field of the pause of all names.
	Pause = "pause"
	// Node begins the field of a drain of a node: its id follows.
	Node = "n:"
	// Label begins the field of a drain of a label.
	Label = "l:"
	// Drain is what the field of a drain says.
	Drain = "drain"
	// Stop is what it says when the drain is over.
	Stop = "stop"
)

// Field is what one field of a notice says.
type Field struct {
	// Number is greater than that of each older text; 0 of a field that is not there.
	Number int64
	// Until is when a pause ends, in ms of the server's clock; 0 where it was ended, and of a drain.
	Until int64
	// What is the reason of a pause; of a drain Drain or Stop.
	What string
}

// Read reads the text of a field. What Berth has not written reads as nothing.
func Read(text string) Field {
	words := strings.SplitN(text, " ", 4)
	if len(words) < 4 {
		return Field{}
	}
	number, err := strconv.ParseInt(words[0], 10, 64)
	until, err2 := strconv.ParseInt(words[2], 10, 64)
	if err != nil || err2 != nil {
		return Field{}
	}
	return Field{Number: number, Until: until, What: words[3]}
}
