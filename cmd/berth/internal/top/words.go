package top

import (
	"crypto/tls"
	"errors"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// words is an error for a person, in one line. Of a connection that does not work it says no more than that: which call
// has met it, and how often it was sent, is of no use to who looks.
func words(err error) string {
	// Each of what is joined stands for itself.
	if all, ok := err.(interface{ Unwrap() []error }); ok && err.Error() == errors.Join(all.Unwrap()...).Error() {
		var says []string
		for _, err := range all.Unwrap() {
			if one := words(err); !slices.Contains(says, one) {
				says = append(says, one)
			}
		}
		return strings.Join(says, "; ")
	}
	var answer *rueidis.RedisError
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.Is(err, berth.ErrUnavailable) && errors.As(err, &answer):
		return "the server refuses for now: " + oneLine(answer)
	case errors.As(err, &untrusted): // it answers
	case watch.Silent(err):
		return "the server does not answer"
	}
	return oneLine(err)
}

func oneLine(err error) string { return strings.TrimPrefix(app.OneLine(err.Error()), "berth: ") }

// mayBeDone reports whether the server may have done what an action asked for, and has not answered.
func mayBeDone(err error) bool {
	var call *scriptkit.Error
	return errors.As(err, &call) && call.MaybeRan
}
