// Package node is what a process is to the other processes of a namespace: one id and one label, under which it waits, holds,
// is listed, drains and ends, whatever it locks, limits or leases.
//
//	n, err := node.New(redis, node.Config{Label: "importer/1", Logger: slog.Default()}) // no I/O
//	defer n.Close(ctx)
//
//	locks, gpu := qlock.New(n, qlock.Config{}), semaphore.New(n, "gpu", 4, semaphore.Config{})
//	proxies := allocator.New(n, "proxies", allocator.Config[string]{Source: list})
//	digest := once.New(n, "digest", once.Config{Every: 24 * time.Hour})
//	scheduler := leader.New(n, "scheduler", leader.Config{})
//	_, err = n.Check(ctx) // the server, and the options above
//
// One Node carries all that a process holds: one heartbeat, one subscription, one reader of what operators say. A program that
// has locks alone has nothing of pools in its binary. Make one node for a process; it may make as many locks, semaphores, pools, jobs
// and elections on it as it likes, at any time.
//
// # Bad options
//
// What is made on a node is always made, without I/O. What is wrong with its options each of its calls returns: a *berth.ConfigError,
// which matches berth.ErrInvalidConfig and names the field. [Node.Check] returns the first of them too, so that a program
// that checks at its start hears of it there; but a bad name, which may be somebody else's, only its own calls refuse.
// A nil node is such an error.
//
// # The end
//
// [Node.Close] ends first what runs in jobs, elections and pools: it waits for the runs of
// jobs, hands on what is led, and asks no Source any more. Then it ends all waits, and gives back all that is held and not detached, of all kinds. Then it
// closes the values that pools have opened. A Pool, a Job and an Election may be closed earlier by themselves.
//
// To finish what runs when a program is told to end: wait with a ctx that ends then, work under the handle's Context,
// which does not, release, and close the node last.
//
// # What all share
//
// A drain is of the process: [Operator.Drain] by id or label reaches all that it holds, of all kinds, also what is made later. A pause
// of all names hangs on one Redis key for all kinds. In a swarm, which guards holds that have no end, a node that the others may
// have found dead loses all that it holds, of all kinds, and the process goes on under another id; see [SwarmConfig]. What must not
// end so needs a node of its own.
package node
