package scriptkit

import (
	"fmt"
	"strconv"

	"github.com/redis/rueidis"
)

// Reply is a script's answer: a status word, then fields. Its methods never
// fail; they return zero for what is not there or has another type, and keep
// the first such error for Err. Read all fields, then look at Err once. A Reply
// is for one goroutine.
type Reply struct {
	// Unanswered says that an earlier attempt of the same call may have run,
	// or may still run, without its answer having been read.
	Unanswered bool

	script   *Script
	shape    *Return // the reply of the header that has this status
	elements []rueidis.RedisMessage
	plain    rueidis.RedisMessage // of a reply that is one text
	err      error
}

// newReply reads the shape of an answer: a table whose first element is one of
// the statuses of the header, or a text, see Plain.
func newReply(s *Script, result rueidis.RedisResult) (Reply, error) {
	message, err := result.ToMessage()
	r, status := Reply{script: s}, Plain
	if err == nil && message.IsString() {
		r.plain = message
	} else if r.elements, err = message.ToArray(); err != nil || len(r.elements) == 0 {
		return Reply{}, fmt.Errorf("the answer is no table with a status")
	} else if status, err = r.elements[0].ToString(); err != nil {
		return Reply{}, fmt.Errorf("the answer does not begin with a status")
	}
	for i := range s.Returns {
		if shape := &s.Returns[i]; shape.Status == status {
			r.shape = shape
			return r, nil
		}
	}
	return Reply{}, fmt.Errorf("the answer's status %q is not in RETURNS", status)
}

// Status is the status word: one of those in RETURNS of the script's header,
// and "" on a Reply that came with an error.
func (r *Reply) Status() string {
	if r.shape == nil {
		return ""
	}
	return r.shape.Status
}

// Len is the number of elements, the status included.
func (r *Reply) Len() int {
	if r.plain.IsString() {
		return 2
	}
	return len(r.elements)
}

// Int returns element i as an integer. The status is element 0, so the indices
// are those of RETURNS. Integers are read, and strings of decimal digits: that
// is how scripts send fences.
func (r *Reply) Int(i int) int64 {
	e := r.element(i)
	if e == nil {
		return 0
	}
	if e.IsInt64() {
		v, _ := e.ToInt64()
		return v
	}
	if !e.IsString() {
		r.fail(i, "is not a number")
		return 0
	}
	text, _ := e.ToString()
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil { // its text may be somebody's data, so it is not shown
		r.fail(i, "is text that is not a whole number")
		return 0
	}
	return v
}

// Str returns element i as a string. An integer is returned in decimal.
func (r *Reply) Str(i int) string {
	if i == 0 && r.shape != nil {
		return r.shape.Status
	}
	e := r.element(i)
	if e == nil {
		return ""
	}
	if e.IsInt64() {
		v, _ := e.ToInt64()
		return strconv.FormatInt(v, 10)
	}
	if !e.IsString() {
		r.fail(i, "is not text")
		return ""
	}
	text, _ := e.ToString()
	return text
}

// Err is an *Error for the first element that was asked for and is missing or
// has another type. It is nil if there was none.
func (r *Reply) Err() error { return r.err }

func (r *Reply) element(i int) *rueidis.RedisMessage {
	if i == 1 && r.plain.IsString() {
		return &r.plain
	}
	if i < 0 || i >= len(r.elements) {
		r.fail(i, "is missing")
		return nil
	}
	return &r.elements[i]
}

// fail keeps the first problem.
func (r *Reply) fail(i int, problem string) {
	if r.err != nil {
		return
	}
	e := &Error{MaybeRan: r.Unanswered}
	if r.shape == nil {
		e.Err = fmt.Errorf("element %d of an empty reply %s", i, problem)
	} else {
		e.Script = r.script.Name
		e.Err = fmt.Errorf("element %d%s of the reply %q %s", i, r.shape.label(i), r.shape.Status, problem)
	}
	r.err = e
}

// label is the name of element i in parentheses, or nothing.
func (r *Return) label(i int) string {
	if i < 1 || i > len(r.Fields) {
		return ""
	}
	return " (" + r.Fields[i-1] + ")"
}
