package fast

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/state"
)

// Somebody else may have written a number that is none. A script looks at those that it reckons with before its first
// write: what it does it does whole.
func TestADamagedNumberIsMetBeforeAnythingIsWritten(t *testing.T) {
	for _, field := range []string{"exp", "due", "ticket", "busy", "used", "waiting", "cap"} {
		t.Run(field, func(t *testing.T) {
			inWorld(t, "semaphore", func(t *testing.T, named func(name string) *world) {
				for what, held := range map[string]int{"an acquire": 1, "a wait": 2} {
					w := named(what)
					for n := range held {
						w.acquire(t, w.plainly(fmt.Sprint("n.", n)))
						w.Advance(time.Millisecond)
					}
					values := fmt.Sprint(w.do(t, "HGET", w.state, "v"))
					at := map[string]int{"exp": 19, "due": 33, "ticket": 47, "busy": 61, "used": 75, "waiting": 92, "cap": 100}[field]
					w.do(t, "HSET", w.state, "v", values[:at+4]+"x"+values[at+5:])
					was := w.dump(t, w.state, w.line)
					a := w.plainly("n.new")
					args := append(
						[]string{"EVAL", w.whole.Script("semaphore_acquire").Source(), "2", w.state, w.line},
						asking("n", a.linger).Acquire(ofNode(a.claim), &a.Record, "1", "stored", state.Calm(2))...)
					reply := w.Redis.Do(context.Background(), w.Redis.B().Arbitrary(args...).Build())
					text, err := reply.ToString()
					if err == nil { // what is only copied keeps nobody out
						require.NotEmpty(t, text)
						require.NotNil(t, w.do(t, "HGET", w.state, "c:"+ofNode(a.claim)))
						continue
					}
					require.Equal(t, was, w.dump(t, w.state, w.line), "%s that is answered %v", what, err)
				}
			})
		})
	}
}
