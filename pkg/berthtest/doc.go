// Package berthtest gives tests of programs that use Berth their own Redis, and the faults that
// a Redis may have. It needs neither a server nor a network.
//
// Inside testing/synctest the time of that Redis is virtual too: hours of leases, expiries and
// waits pass in milliseconds, exact to the millisecond, and the same every time:
//
//	func TestNightlyJob(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			locks := qlock.New(berthtest.Node(t), qlock.Config{}) // the t of the bubble
//			...
//			time.Sleep(61 * time.Minute) // all leases have run for 61 minutes
//		})
//	}
//
// Make all clients and nodes inside the bubble, since a bubble ends only when all of its goroutines have
// ended. [Node] and [Server.Node] close their nodes before the bubble ends; close a node of your own
// with defer, or with t.Cleanup after the call of Redis. If a sleep ends at the same moment as another
// event, synctest.Wait lets the other event happen first. Outside of a bubble all works the same in real
// time; give nodes a short Lease there.
//
// # Faults
//
// [New] starts the same Redis as a [Server], whose methods cause faults. A fault affects all clients
// and nodes of this server, and no other server. All faults end with the test. Each method has a
// whole test as its example.
//
// A lost hold. [Server.Lose] ends the hold of a handle at once. [Server.LoseAll] ends all holds
// of a name, including those of Do, within a third of the lease:
//
//	server.LoseAll("export")
//	require.ErrorIs(t, <-worker, berth.ErrLost) // it has stopped
//
// An outage. With [Server.Outage] connections break, and no client can connect; with
// [Server.Hang] connections stay, but no data passes. Both end after the given time. An outage
// of up to two fifths of the lease loses no hold, whenever it begins. A longer outage may lose
// a hold; the holder learns of the loss before another claim can get the place. During a long
// outage Close of a node takes until Config.Retry gives up, 10 s:
//
//	server.Outage(time.Minute)
//	<-permit.Done()
//	require.ErrorIs(t, permit.Err(), berth.ErrLost)
//
// A failover. [Server.Failover] replaces the server by one with the data of an earlier moment.
// Holds granted since then are lost when their holders next renew them; waiting claims wait on
// in the old order; fences rise:
//
//	before := server.Snapshot()
//	lock, err := locks.Lock(ctx, "order:7", nil)
//	server.Failover(before)
//	<-lock.Done()
//
// Late replies. [Server.DelayReplies] delays the reply to each script. A call whose reply is
// later than Config.CallTimeout, 3 s, counts as unanswered, and is sent again:
//
//	server.DelayReplies(500 * time.Millisecond)
//	permit, err := gpu.Acquire(ctx, nil)
//	require.Equal(t, 500*time.Millisecond, permit.Waited())
//
// Dropped replies. With [Server.DropReplies] the next scripts run, but their replies never
// arrive: their connection breaks, since a reply cannot be lost alone. Berth sends the call
// again, and the repeated call finds the result of the first:
//
//	server.DropReplies(1)
//	proxy, err := proxies.Allocate(ctx, nil) // one is allocated
//
// Package embedded lists how this Redis differs from a real one. Never use it in production.
package berthtest
