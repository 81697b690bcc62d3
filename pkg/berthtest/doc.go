// Package berthtest gives a test a Redis of its own, for tests of programs that
// use Berth, and the faults that a Redis may have. It needs neither a server nor a network.
//
// Inside testing/synctest the time of that Redis is virtual, too: leases,
// expiries and waits of hours pass in milliseconds, exactly to the millisecond,
// and the same every time:
//
//	func TestNightlyJob(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			locks := qlock.New(berthtest.Node(t), qlock.Config{}) // the t of the bubble
//			...
//			time.Sleep(61 * time.Minute) // all leases have run for 61 minutes
//		})
//	}
//
// Make everything inside the bubble: a bubble ends only when all of its goroutines have. [Node] and
// [Server.Node] close their nodes before it ends; close a node of your own with defer, or with t.Cleanup
// after the call of Redis. Where a sleep ends at the very moment at which something
// else happens, synctest.Wait lets that happen first. Outside of a bubble all is the same
// in real time; give nodes a short Lease there.
//
// # Faults
//
// [New] makes the same Redis as a [Server], whose methods are its faults. All its clients
// and nodes meet them, and no other server does. They end with the test. Each has a whole test as its
// example.
//
// A hold is lost. [Server.Lose] ends the one of a handle, at once. [Server.LoseAll] ends all
// of a name, for what runs under Do, within a third of the lease:
//
//	server.LoseAll("export")
//	require.ErrorIs(t, <-worker, berth.ErrLost) // it has stopped
//
// An outage. With [Server.Outage] connections break, and nobody connects; with
// [Server.Hang] they stay, and nothing passes. After so long all goes on. An outage of up
// to two fifths of the lease loses nothing, whenever it begins. A longer one may lose a
// hold; its holder learns that before anybody else can get it. Close takes until
// Config.Retry gives up, 10 s, if its outage lasts longer:
//
//	server.Outage(time.Minute)
//	<-permit.Done()
//	require.ErrorIs(t, permit.Err(), berth.ErrLost)
//
// A failover. [Server.Failover] puts in place of the server one that has what it had at an
// earlier moment. Holds granted since are lost when their holders next renew them; who waited
// waits on in the old order; fences rise:
//
//	before := server.Snapshot()
//	lock, err := locks.Lock(ctx, "order:7", nil)
//	server.Failover(before)
//	<-lock.Done()
//
// Late replies. [Server.DelayReplies] has what each script answers arrive so much later.
// What is later than Config.CallTimeout, 3 s, counts as unanswered, and is sent again:
//
//	server.DelayReplies(500 * time.Millisecond)
//	permit, err := gpu.Acquire(ctx, nil)
//	require.Equal(t, 500*time.Millisecond, permit.Waited())
//
// Dropped replies. With [Server.DropReplies] the next scripts run, and their answers never
// come: a reply cannot be lost alone, so their connection breaks. Berth sends a call again, and
// it finds what the first has done:
//
//	server.DropReplies(1)
//	proxy, err := proxies.Allocate(ctx, nil) // one is allocated
//
// How this Redis differs from a real one is in package embedded. It is never
// for production.
package berthtest
