package integration

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/internal/wake"
)

// recorder is a connection that keeps what scripts are sent and what the server answers.
type recorder struct {
	rueidis.Client
	*record
}

// record is what several connections have in common.
type record struct {
	mu    sync.Mutex
	sent  map[string]bool     // guarded by mu: the scripts that were sent
	told  map[string]bool     // guarded by mu: the numbers that the server has told
	times map[string][]string // guarded by mu: by script, wall-clock times that it had not told before
}

func (w *world) recorder(edits ...func(*rueidis.ClientOption)) *recorder {
	w.Helper()
	w.load()
	return &recorder{
		w.server.Client(w.T, edits...),
		&record{sent: map[string]bool{}, told: map[string]bool{}, times: map[string][]string{}},
	}
}

// Nodes are those over which a reader reads.
func (r *recorder) Nodes() map[string]rueidis.Client {
	nodes := r.Client.Nodes()
	for at, c := range nodes {
		nodes[at] = &recorder{c, r.record}
	}
	return nodes
}

// Do is what scriptkit calls.
func (r *recorder) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	r.note(cmd.Commands())
	result := r.Client.Do(ctx, cmd)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hear(result)
	return result
}

// DoMulti is what reads, and beats of several names.
func (r *recorder) DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult {
	for _, cmd := range multi {
		r.note(cmd.Commands())
	}
	results := r.Client.DoMulti(ctx, multi...)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, result := range results {
		r.hear(result)
	}
	return results
}

// Receive is what wake calls.
func (r *recorder) Receive(ctx context.Context, cmd rueidis.Completed, deliver func(rueidis.PubSubMessage)) error {
	return r.Client.Receive(ctx, cmd, func(message rueidis.PubSubMessage) {
		m, _ := wake.Parse(message.Message) // of one that is none there are no fields
		r.mu.Lock()
		for _, field := range m.Fields {
			r.read(field)
		}
		r.mu.Unlock()
		deliver(message)
	})
}

// note takes a command that runs a script.
func (r *record) note(words []string) {
	if len(words) < 3 || !strings.HasPrefix(words[0], "EVAL") {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	script := names[words[1]]
	r.sent[script] = true
	for _, word := range words[2:] {
		for _, n := range number.FindAllString(word, -1) {
			if value, err := strconv.ParseFloat(n, 64); err == nil && !r.told[strings.TrimLeft(n, "0")] && isTime(value) {
				r.times[script] = append(r.times[script], n)
			}
		}
	}
}

// number is what may be a time: of seconds, or of a smaller unit.
var number = regexp.MustCompile(`\d{10,}`)

// hear takes the numbers of a reply. It is called with r.mu held.
func (r *record) hear(result rueidis.RedisResult) {
	reply, err := result.ToAny()
	if err != nil {
		return
	}
	text := fmt.Sprint(reply)
	r.read(text)
	var seconds, micros int64
	if n, _ := fmt.Sscanf(text, "[%d %d]", &seconds, &micros); n == 2 { // of TIME
		r.read(fmt.Sprint(seconds*1000 + micros/1000))
	}
}

// read takes the numbers of a text. It is called with r.mu held.
func (r *record) read(text string) {
	for _, n := range number.FindAllString(text, -1) {
		r.told[strings.TrimLeft(n, "0")] = true
	}
}

// isTime says whether a number is a time within a day from now, in some unit.
func isTime(value float64) bool {
	const day = 86400
	now := float64(time.Now().Unix())
	for _, unit := range []float64{1, 1e3, 1e6, 1e9} {
		if at := value / unit; at > now-day && at < now+day {
			return true
		}
	}
	return false
}

// has says whether a script was sent.
func (r *record) has(script string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent[script]
}

// known are the wall-clock times that the server was told and had not told before.
func (r *record) known() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.times
}
