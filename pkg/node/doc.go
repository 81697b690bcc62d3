// Package node connects a process to a namespace: under one id and one label the process waits, holds, is listed, drains and
// ends, for all kinds of names.
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
// Make one node for a process. The process may make any number of locks, semaphores, pools, jobs and elections on the node, at
// any time. All of them share one heartbeat, one subscription and one reader of operators' notices. A program that uses only
// locks links no code of pools.
//
// # Bad options
//
// The New functions of the other packages do no I/O and return no error. If their options are bad, each call of the returned
// object returns a *berth.ConfigError, which matches berth.ErrInvalidConfig and names the field. A nil node is such an error too.
// [Node.Check] returns the first of these errors, so call Check when the program starts. Check does not report bad names, since a
// name may come from a user; only the calls of an object with a bad name refuse.
//
// # Closing
//
// [Node.Close] works in this order:
//
//   - It ends jobs, elections and pools: it waits for the runs of jobs, hands on leadership, and stops calling any Source.
//   - It ends all waits, and gives back all holds of all kinds, except detached ones.
//   - It closes the values that pools have opened.
//
// A Pool, a Job and an Election can also be closed separately, before the node.
//
// To let the current work finish when the program is told to end: wait with a ctx that ends at that moment, work under the
// handle's Context, which goes on, release, and close the node last.
//
// # Shared by all kinds
//
// A drain concerns the process: [Operator.Drain], by id or label, reaches all holds of all kinds, including later ones. A pause of
// all names depends on one Redis key for all kinds. A swarm guards holds without end: if the other nodes may have found a node
// dead, the node loses all its holds, of all kinds, and the process goes on under another id; see [SwarmConfig]. Make a separate
// node for holds that must not end in this way.
package node
