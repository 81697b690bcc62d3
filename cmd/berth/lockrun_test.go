//go:build unix

package main

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/qlock"
)

// queueLength is how many claims wait for the lock gpu.
func queueLength(t *testing.T, locks *qlock.Client) int {
	t.Helper()
	stats, err := locks.Operator().Stats(context.Background(), "gpu")
	require.NoError(t, err)
	return stats.Waiting
}

// lockHolder is the one entry of the lock gpu.
func lockHolder(t *testing.T, s *embedded.Server) berth.Holder {
	t.Helper()
	holders, err := collect(locksOf(t, s, qlock.Config{}).Operator().Holders(context.Background(), "gpu"))
	require.NoError(t, err)
	require.Len(t, holders, 1)
	return holders[0]
}

func TestTheCommandUnderALockFindsItsHoldInTheEnvironment(t *testing.T) {
	t.Parallel()
	s := server(t)
	r := beginWith(t, s.URL(), lockArgs("polite"))
	holder := lockHolder(t, s)
	require.Equal(t, holder.ID, r.claim)
	require.Equal(t, strconv.FormatInt(holder.Fence, 10), r.fence)
	require.Equal(t, 5*time.Second, holder.Lease)
	require.False(t, holder.NoRenew)
	require.True(t, strings.HasSuffix(holder.Label, "/berth.test/"+strconv.Itoa(r.cmd.Process.Pid)), holder.Label)
	r.signal(syscall.SIGTERM)
	require.Equal(t, "got terminated", r.line())
	require.Equal(t, 3, r.end(), "the command's own code")
	require.Empty(t, r.errs.String())
	requireUnlocked(t, s.URL())
}

func TestTheOptionsOfALockAreItsClaims(t *testing.T) {
	t.Parallel()
	s := server(t)
	r := beginWith(t, s.URL(), lockArgs("polite", "--lease", "1h", "--no-renew", "--max-hold", "2h", "--access", "random"))
	holder := lockHolder(t, s)
	require.Equal(t, time.Hour, holder.Lease)
	require.Equal(t, 2*time.Hour, holder.MaxHold)
	require.True(t, holder.NoRenew)
	require.Greater(t, holder.Left, 59*time.Minute, "the whole lease from the start")

	late := spawn(t, s.URL(), lockArgs("polite", "--priority", "7", "--wait", "4s")...)
	require.Equal(t, 75, late.code)
	next := program(t, s.URL(), lockArgs("polite", "--priority", "7")...)
	require.NoError(t, next.Start())
	locks := locksOf(t, s, qlock.Config{})
	require.Eventually(t, func() bool { return queueLength(t, locks) == 1 }, patience, 10*time.Millisecond)
	for waiter, err := range locks.Operator().Waiters(context.Background(), "gpu") {
		require.NoError(t, err)
		require.Equal(t, 7, waiter.Priority)
	}
	require.NoError(t, next.Process.Signal(syscall.SIGTERM))
	require.Error(t, next.Wait())
	r.signal(syscall.SIGINT)
	require.Equal(t, "got interrupt", r.line(), "and no SIGTERM before it")
	require.Equal(t, 3, r.end())
}

// TestALockIsHandedOnByTheAccessOfEach has three commands wait: the last in first
// out one that came last passes the other such one, and not the one in the queue.
func TestALockIsHandedOnByTheAccessOfEach(t *testing.T) {
	t.Parallel()
	s := server(t)
	locks := locksOf(t, s, qlock.Config{})
	first, err := locks.Lock(context.Background(), "gpu", nil)
	require.NoError(t, err)
	fences := make(chan string, 3)
	for i, o := range [][]string{{"lifo", "third"}, {"lifo", "second"}, {"queued", "first"}} {
		cmd := program(t, s.URL(), "run", "--lock", "gpu", "--access", o[0], "--", "sh", "-c", "echo $BERTH_FENCE "+o[1])
		go func() {
			out, err := cmd.Output()
			if err != nil {
				out = []byte(err.Error())
			}
			fences <- string(out)
		}()
		require.Eventually(t, func() bool { return queueLength(t, locks) == i+1 }, patience, 10*time.Millisecond)
	}
	require.NoError(t, first.Release(context.Background()))
	last := first.Fence()
	order := make(map[string]string)
	for range 3 {
		words := strings.Fields(<-fences)
		require.Len(t, words, 2)
		order[words[1]] = words[0]
	}
	for _, place := range []string{"first", "second", "third"} {
		fence, err := strconv.ParseInt(order[place], 10, 64)
		require.NoError(t, err)
		require.Greater(t, fence, last, place)
		last = fence
	}
}

func TestALockOfABerthThatIsKilledComesFreeWithItsLease(t *testing.T) {
	t.Parallel()
	s := server(t)
	r := beginWith(t, s.URL(), lockArgs("stubborn", "--lease", "15s"))
	r.signal(syscall.SIGKILL)
	lock, err := locksOf(t, s, qlock.Config{}).Lock(context.Background(), "gpu", nil)
	require.NoError(t, err)
	fence, err := strconv.ParseInt(r.fence, 10, 64)
	require.NoError(t, err)
	require.Greater(t, lock.Fence(), fence)
}

func TestALockThatAnOperatorReleasesEndsTheCommand(t *testing.T) {
	t.Parallel()
	s := server(t)
	r := beginWith(t, s.URL(), lockArgs("polite", "--lease", "1h"))
	require.Equal(t, outcome{0, "gpu: released\n", ""}, call(t, s.URL(), "lock", "release", "gpu", "--force"))
	require.Equal(t, "got terminated", r.line())
	require.Equal(t, exitLost, r.end())
	require.Contains(t, r.errs.String(), `"gpu": somebody else has released it: SIGTERM sent`)
	require.Contains(t, r.errs.String(), `the lock "gpu", fence `+r.fence+`, was released by somebody else`)
}
