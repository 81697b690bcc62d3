package fast

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/amount"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inWorld runs a test in virtual time, beside others, on names that nobody has used
// yet.
func inWorld(t *testing.T, kind string, test func(t *testing.T, named func(name string) *world)) {
	t.Helper()
	inTime(t, func(t *testing.T, w World) {
		named := w.names()
		test(t, func(name string) *world { return named(kind, name) })
	})
}

func inTime(t *testing.T, test func(t *testing.T, w World)) {
	t.Helper()
	testkit.In(t, "", "", "", func(t *testing.T, w *testkit.World) {
		test(t, World{T: t, Redis: w.Redis, Now: time.Now, Advance: func(d time.Duration, _ ...string) { w.Advance(d) }})
	})
}

func TestThePlainCaseOfALockDoesWhatTheGeneralWayDoes(t *testing.T)      { playPlain(t, "lock") }
func TestThePlainCaseOfASemaphoreDoesWhatTheGeneralWayDoes(t *testing.T) { playPlain(t, "semaphore") }
func TestThePlainCaseOfAPoolDoesWhatTheGeneralWayDoes(t *testing.T)      { playPlain(t, "pool") }

func playPlain(t *testing.T, kind string) {
	t.Helper()
	require.NoError(t, amount.Histories(2))
	inTime(t, func(_ *testing.T, w World) { Play(w, kind, kind) })
}
