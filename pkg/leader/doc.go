// Package leader elects one of many processes as the leader of a name, and runs a function in
// that process while it leads.
//
//	n, err := node.New(redis, node.Config{Logger: slog.Default()}) // what fails in Run is told there
//	defer n.Close(ctx)
//
//	scheduler := leader.New(n, "scheduler", leader.Config{})
//	err = scheduler.Run(ctx, func(ctx context.Context) error {
//		return schedule(ctx, scheduler.Fence(ctx)) // until ctx ends
//	})
//
// The leader of a name holds the lock of that name, of package qlock. Line, priority, heartbeat, fence, pause
// and drain work as for locks, and so do listings: the command berth lock show NAME shows the leader and the
// candidates in line. A claim of qlock for the same name competes with the candidates.
//
// [New] returns no error: bad arguments of New are returned by each call of the [Election], and by Check of the node.
// Call Check when the program starts.
//
// # Model
//
//	         granted               f returns
//	stands ───────────► leads ───────────────► resigns ──► Run returns f's error
//	  ▲  │                │
//	  │  │ refused        │ lost, or wanted back: the context of f ends
//	  │  ▼                ▼
//	  │ stays out     winds up
//	  │  │                │ f returns; what is wanted back is handed on
//	  └──┴────────────────┘
//
// A process that stands waits in line as a candidate, even while the server does not answer. With the grant its term
// begins, and f runs. The context of f ends before any other process can lead:
//
//   - Lost: the hold was not renewed in time, the server has forgotten it, or an operator has ended it. The
//     cause is a *berth.EndError. From then on another process may lead. Run waits until f has returned, and
//     stands again.
//   - Wanted back: an operator, a drain, or a candidate with [Config.WantAfter] has asked for leadership. The
//     cause is [ErrWanted]. The process still leads, alone, until f has returned. Then it resigns, and stands
//     again at the end of the line. With [Config.KeepWhenWanted] the context of f goes on.
//
// Resigning hands leadership on at once: one script ends the hold and grants the lock to the first in line. A
// process also resigns when f panics or calls runtime.Goexit; the panic or the exit then continues through Run.
//
// A candidate is refused while its process drains, by a server that answers with an error (a full server,
// or a missing right), and by an operator who ends the wait. Run then stays out of the line for a second,
// or during a drain until the drain stops, and stands again.
//
// # The end of f
//
// If f returns while its context lives, Run returns f's error or nil. There is one exception: once leadership is
// wanted back, even under KeepWhenWanted, a nil from f does not end Run; the process resigns, and stands again. If
// f returns after its context has ended, Run ignores the error, since f was told to stop. If such an error matters,
// f must report it. To leave the election for good, end the context of Run.
//
// When the context of Run ends, so does that of f. Run waits for f, resigns, and returns f's error. If f does not run
// then, Run returns an error that matches ctx.Err() and context.Cause(ctx).
//
// # Guarantees
//
// While Redis keeps its data and its clock, and the clocks of the processes run:
//
//   - the contexts of two leaders of a name never live at the same time, whatever the network does;
//   - Err and Done of the context of f compare the clock themselves, so the first call reports a loss, even if
//     the process was stopped and no timer has fired yet. A context derived from the context of f ends at the
//     same moment, or when a timer fires;
//   - after the death of a leader, the first in line leads when the lease has ended (Config.Lease after the
//     last renewal) and one call has been made;
//   - every term has a greater fence than all terms before it.
//
// # Not guaranteed
//
//   - That f stops when its context ends. Pass [Election.Fence] to the systems that the leader writes to, and
//     refuse smaller fences there; package fence has guards.
//   - One leader after a failure of Redis. If Redis loses writes (by a flush or a failover) or its clock jumps
//     forward, two processes may lead until the older leader's next heartbeat, for at most one lease. After an
//     operator has ended a term by force, two may lead until the older leader learns of the end.
//   - One leader after a stopped clock. If the clock of a leader's process stands still, two processes may lead
//     until the older leader's next heartbeat, for at most one lease after that clock goes on. On Linux the clock
//     runs through suspend, on other systems it does not. In a paused virtual machine no clock runs.
//   - A leader while no process reaches the server, or while the name is paused.
//
// # Priority
//
// A candidate of a higher priority stands ahead of lower ones, and leads next. Only a candidate with WantAfter
// ends the current term early: it asks the leader for leadership, whatever the leader's priority is. So set
// WantAfter only for candidates that should take over.
//
// # Events
//
// An election sends the events of its lock and, for each term, observe.TermBegan and observe.TermEnded, at level info. A
// long term is never reported as held long.
//
// # Reading the leader
//
// [Election.Current] reads who leads, and [Election.Watch] reports each change. Both only read, so any process
// may use them, even with a Redis user that may not write. Their answers may be slightly old: a process is
// reported as leader from its grant on, shortly before it learns of the grant itself, and a dead process until
// its lease ends.
package leader
