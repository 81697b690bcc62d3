package scriptkit

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

// What lets a client in may be about to be changed, so a client that was served before asks again; one that
// never was has the wrong credentials.
func TestEachRefusalTakesItsCourse(t *testing.T) {
	t.Parallel()
	for _, r := range Refusals() {
		for _, served := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, served %t", r.Begins, served), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					texts := []string{"-" + r.Begins + " and more\r\n"}
					if served {
						texts = append([]string{table("ok", "1")}, texts...)
					}
					server, opts := newFakeServer(t, answers(texts...)), exact()
					opts.Retry.Attempts = 3
					runner := NewRunner(server.client(t), opts)
					if served {
						_, err := run(t.Context(), runner, simple(t), Once)
						require.NoError(t, err)
					}
					_, err := run(t.Context(), runner, simple(t), Bounded)
					require.Error(t, err)
					passes, attempts := r.Course == Passes || r.Course == PassesOnceServed && served, 1
					if passes {
						attempts = 3
					}
					var e *Error
					require.ErrorAs(t, err, &e)
					require.Equal(t, attempts, e.Attempts)
					require.Equal(t, passes, Repeatable(err))
					require.Equal(t, passes, errors.Is(err, berth.ErrUnavailable))
					require.Equal(t, passes && r.Doubt, MaybeRan(err))
					if r.Is != nil {
						require.ErrorIs(t, err, r.Is)
					}
				})
			})
		}
	}
}

// To be let in is not to be served, and neither is what only the client itself answers.
func TestWhoWasRefusedWasNotServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const denied = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
		server := newFakeServer(t, answers("-LOADING wait\r\n", denied, table("ok", "1"), denied))
		runner := NewRunner(server.client(t), exact())
		ask := func() error {
			_, err := run(t.Context(), runner, simple(t), Once)
			return err
		}
		require.ErrorIs(t, ask(), berth.ErrUnavailable)
		require.NotErrorIs(t, ask(), berth.ErrUnavailable)
		require.NoError(t, ask())
		require.ErrorIs(t, ask(), berth.ErrUnavailable)
	})
}

// What is optional of a Read may be refused, and the Read is answered all the same.
func TestAReadIsServedOnlyWhereACommandIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const denied = "-NOAUTH Authentication required.\r\n"
		server := newFakeServer(t, answers(denied, denied, ":1\r\n", denied))
		runner := NewRunner(server.client(t), exact())
		read := func(optional bool) error {
			_, err := runner.Read(t.Context(), "look", From{Unasked: true, Untimed: true}, Command{Verb: []string{"HLEN"}, Keys: []string{"x"}, Optional: optional})
			return err
		}
		require.NoError(t, read(true))
		require.NotErrorIs(t, read(false), berth.ErrUnavailable)
		require.NoError(t, read(false))
		require.ErrorIs(t, read(false), berth.ErrUnavailable)
	})
}
