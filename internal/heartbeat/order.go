package heartbeat

import (
	"container/heap"
	"time"
)

// order keeps items by time, the earliest first. When the time of one has
// changed, set or drop must follow before the order is used again.
type order[T any] struct {
	items []T
	at    func(T) time.Duration
	slot  func(T) *int32 // where the item keeps its index + 1; 0 when not in here
}

// first returns the earliest item.
func (o *order[T]) first() (item T, ok bool) {
	if len(o.items) == 0 {
		return item, false
	}
	return o.items[0], true
}

// next is when the earliest item comes, or never.
func (o *order[T]) next() time.Duration {
	if len(o.items) == 0 {
		return never
	}
	return o.at(o.items[0])
}

// set puts an item in, or moves it to its new time.
func (o *order[T]) set(item T) {
	if slot := *o.slot(item); slot != 0 {
		heap.Fix(o, int(slot-1))
		return
	}
	heap.Push(o, item)
}

// drop takes an item out, if it is in.
func (o *order[T]) drop(item T) {
	if slot := *o.slot(item); slot != 0 {
		heap.Remove(o, int(slot-1))
	}
}

// Len is for container/heap, as are the four methods below.
func (o *order[T]) Len() int { return len(o.items) }

// Less is for container/heap.
func (o *order[T]) Less(i, j int) bool { return o.at(o.items[i]) < o.at(o.items[j]) }

// Swap is for container/heap.
func (o *order[T]) Swap(i, j int) {
	o.items[i], o.items[j] = o.items[j], o.items[i]
	*o.slot(o.items[i]), *o.slot(o.items[j]) = int32(i+1), int32(j+1)
}

// Push is for container/heap.
func (o *order[T]) Push(item any) {
	o.items = append(o.items, item.(T))
	*o.slot(item.(T)) = int32(len(o.items))
}

// Pop is for container/heap.
func (o *order[T]) Pop() any {
	last := len(o.items) - 1
	item := o.items[last]
	var none T
	o.items[last] = none // for the garbage collector
	o.items = o.items[:last]
	*o.slot(item) = 0
	return item
}
