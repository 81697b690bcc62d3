package berthhttp

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/berth-go/berth"
)

// Options say how long the line may be, and how requests without a permit are answered. A nil
// pointer means that all fields are zero.
type Options struct {
	// MaxWait limits how long a request waits for its permit, including the server's answer;
	// berth.Forever for as long as the request's context lasts. Default 1 s.
	MaxWait time.Duration
	// MaxWaiting limits how many requests of this process may wait for a permit of one semaphore.
	// Below 0 no request waits in line. Default 100.
	MaxWaiting int
	// RetryAfter is the value of the Retry-After header: whole seconds, at least 1 s.
	// Default 1 s.
	RetryAfter time.Duration
	// FailOpen serves requests without a permit if the server does not answer, or refuses the call
	// because it is full or a right is missing. Default false: such requests are refused.
	// MaxWaiting still counts: while the server is silent, each process serves at most MaxWaiting
	// requests in each MaxWait, and refuses the others at once. To serve all requests, set
	// MaxWaiting above the number of requests that reach a process in one MaxWait.
	FailOpen bool
	// Refuse answers a request without a permit. The header Retry-After is already set. The error
	// is that of LimitBy's function or of the acquire, which matches berth.ErrBusy if others were
	// the reason, berth.ErrUnavailable if the server did not answer, and berth.ErrInvalidConfig
	// for a bad name. Default: a line of text and status 503 for an error of the acquire; status
	// 400 (Bad Request) for berth.ErrInvalidConfig and 500 (Internal Server Error) for another
	// error of LimitBy's function, both without Retry-After.
	Refuse func(w http.ResponseWriter, r *http.Request, err error)
	// Logger gets a line at level warn for refused requests, at most one in 10 s: count is how many requests
	// were refused since the previous line, error is the error of the last one. Default none.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.MaxWait = cmp.Or(o.MaxWait, time.Second)
	o.MaxWaiting = cmp.Or(o.MaxWaiting, 100)
	o.RetryAfter = cmp.Or(o.RetryAfter, time.Second)
	if o.Refuse == nil {
		o.Refuse = refuse
	}
	return o
}

func (o *Options) validate() error {
	if o.MaxWait < 0 {
		return berth.Invalid("MaxWait", "%s is negative", o.MaxWait)
	}
	if o.RetryAfter < time.Second || o.RetryAfter%time.Second != 0 {
		return berth.Invalid("RetryAfter", "%s is not whole seconds, at least 1s", o.RetryAfter)
	}
	return nil
}

// retryAfter returns the value of the header.
func (o *Options) retryAfter() string {
	return strconv.FormatInt(int64(o.RetryAfter/time.Second), 10)
}

// refuse is the default of Options.Refuse. Names and errors stay inside.
func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	status, text := http.StatusServiceUnavailable, "the request cannot be served at the moment"
	switch {
	case errors.Is(err, berth.ErrInvalidConfig):
		status, text = http.StatusBadRequest, "the request names nothing that can be served"
	case errors.Is(err, berth.ErrBusy):
		text = "too many requests are served at the moment"
	case errors.Is(err, berth.ErrNotAcquired), errors.Is(err, berth.ErrUnavailable), errors.Is(err, berth.ErrClosed):
	default: // LimitBy's function has failed
		status, text = http.StatusInternalServerError, "the request cannot be served"
	}
	if status != http.StatusServiceUnavailable {
		w.Header().Del("Retry-After") // nothing says that the same request is served later
	}
	http.Error(w, text, status)
}
