package pool

import (
	"slices"
	"strconv"
	"strings"
)

// What only the server can say: the model takes it from there. Alone it decides itself.

// drawnFor is the resource that the server has drawn for a claim, but other.
func (d *driver) drawnFor(claim, other string) string {
	if d.alone() {
		for _, key := range slices.Backward(d.free) {
			if key != other && !d.gone(d.items[key]) {
				return key
			}
		}
		return ""
	}
	return d.view.state["r:"+claim]
}

// stillLists says whether an expired resource is still in the list.
func (d *driver) stillLists(key string) bool {
	_, ok := d.view.items["i"+key]
	return d.alone() || ok && !d.view.item(key).leaving
}

// hasDropped says whether a claim that has died is gone.
func (d *driver) hasDropped(claim string) bool {
	_, known := d.view.state["c:"+claim]
	return !known && !d.alone()
}

// hasMarks says whether a lane was to be looked at before the run.
func (d *driver) hasMarks() bool { return d.marks }

// keptOf are the settings that a run has left which has perhaps changed nothing.
func (d *driver) keptOf(before settings) settings {
	if strings.HasSuffix(d.view.state["pool"], " "+d.set.text()) {
		return d.set
	}
	return before
}

// numberOf is the number of a lane: the ticket of the claim that opened it, or the next one that
// no other lane has.
func (d *driver) numberOf(resource string, ticket int64) int64 {
	if number, err := strconv.ParseInt(d.view.state["l:"+resource], 10, 64); err == nil {
		return number
	}
	for n := max(ticket, 512); ; n++ {
		if !d.numbered(n) {
			return n
		}
	}
}

func (d *driver) numbered(number int64) bool {
	for _, n := range d.lanes {
		if n == number {
			return true
		}
	}
	return false
}
