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

// Options say how long the line may be, and what becomes of those who get no permit. A
// nil pointer leaves all fields zero.
type Options struct {
	// MaxWait bounds how long a request waits for its permit, the server's answer
	// included; berth.Forever for as long as the request's context lasts. Default 1 s.
	MaxWait time.Duration
	// MaxWaiting bounds how many requests of this process are without a permit yet, of one
	// semaphore. Below 0 no request waits in line. Default 100.
	MaxWaiting int
	// RetryAfter is the value of the Retry-After header: whole seconds, at least 1 s.
	// Default 1 s.
	RetryAfter time.Duration
	// FailOpen serves requests without a permit where the server does not answer, or refuses the
	// call: it is full, or the user may not. Default false: such requests are refused. MaxWaiting
	// counts on: while the server is silent, each process serves at most MaxWaiting requests in
	// each MaxWait, and refuses the others at once. To serve all requests, set MaxWaiting above
	// the number of requests that reach a process in one MaxWait.
	FailOpen bool
	// Refuse answers a request that gets no permit. Retry-After is set already. The error
	// is that of the acquire: it matches berth.ErrBusy if others were in the way,
	// berth.ErrUnavailable if the server did not answer, berth.ErrInvalidConfig if
	// the request makes no name; or it is the error of LimitBy's function. Default: a line
	// of text and status 503 for an error of the acquire. It is 400 (Bad Request) for
	// berth.ErrInvalidConfig and 500 (Internal Server Error) for another error of LimitBy's
	// function, both without Retry-After.
	Refuse func(w http.ResponseWriter, r *http.Request, err error)
	// Logger gets a line at level warn of a refused request, at most one in 10 s: count says how many requests
	// were refused since the line before, error why the last one was. Default none.
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

// retryAfter is the value of the header.
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
