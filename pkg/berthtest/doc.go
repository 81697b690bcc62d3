// Package berthtest gives a test a Redis of its own, for tests of programs that
// use Berth. It needs neither a server nor a network.
//
// Inside testing/synctest the time of that Redis is virtual, too: leases,
// expiries and waits of hours pass in milliseconds, exactly to the millisecond,
// and the same every time:
//
//	func TestNightlyJob(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			redis := berthtest.Redis(t) // the t of the bubble
//			sems, err := semaphore.New(redis, semaphore.Config{})
//			require.NoError(t, err)
//			defer sems.Close(t.Context())
//			...
//			time.Sleep(61 * time.Minute) // all leases have run for 61 minutes
//		})
//	}
//
// Make everything inside the bubble, and close Berth's clients before it ends
// (with defer, or with t.Cleanup after the call of Redis): a bubble ends only
// when all of its goroutines have.
//
// How this Redis differs from a real one is in package embedded. It is never
// for production.
package berthtest
