// Package leader has one process of many lead: it runs a function while the process leads, and
// again after a loss.
//
//	n, err := node.New(redis, node.Config{Logger: slog.Default()}) // what fails in Run is told there
//	defer n.Close(ctx)
//
//	scheduler := leader.New(n, "scheduler", leader.Config{})
//	err = scheduler.Run(ctx, func(ctx context.Context) error {
//		return schedule(ctx, scheduler.Fence(ctx)) // until ctx ends
//	})
//
// The leader of a name holds the lock of that name, of package qlock. Line, priority, heartbeat, fence,
// pause and drain are those of locks, and so are listings and explanations: berth lock show NAME shows who leads
// and who stands in line. A claim of qlock for the same name takes part.
//
// [New] returns no error: each call of an [Election] that cannot be used says what is wrong, and so does Check of the
// node. Call Check when the program starts.
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
// A process that stands waits in line as a candidate, also while the server does not answer. With the grant its term
// begins, and f runs. The context of f ends before anybody else can lead:
//
//   - Lost: the hold was not renewed in time, the server has forgotten it, or an operator has ended it. The
//     cause is a *berth.EndError. From then on another process may lead. Run waits until f has returned, and
//     stands again.
//   - Wanted back: an operator, a drain, or a candidate with [Config.WantAfter] has asked for it. The cause is
//     [ErrWanted]. The process still leads, and nobody else does, until f has returned. Then it resigns, and
//     stands again at the end of the line. [Config.KeepWhenWanted] leaves f its context.
//
// Resigning hands on at once: one script ends the hold and grants it to the first in line. A process also resigns
// when f panics or calls runtime.Goexit, which then goes on through Run.
//
// A candidate is refused while its process drains, by a server that answers with an error (it is full, or
// the user may not), and by an operator who ends the wait. Run then stays out of the line for a second, and
// during a drain until the drain stops, and stands again.
//
// # What f returns
//
// If f returns while its context lives, Run ends, with f's error or nil. (A nil does not end Run once leadership
// is wanted back, also under KeepWhenWanted: the process resigns, and stands again.) If f returns after its context
// has ended, Run ignores the error: f was told to stop, and such an error says nothing of the work. An error that
// matters all the same is for f to report. To leave for good, end the context of Run.
//
// When the context of Run ends, so does that of f. Run waits for f, resigns, and returns f's error. If f does not run
// then, Run returns an error that matches ctx.Err() and context.Cause(ctx).
//
// # Guarantees
//
// While Redis keeps its data and its clock, and the clocks of the processes run:
//
//   - the contexts that two leaders of a name were given never live at the same time, whatever the network does;
//   - Err and Done of the context of f compare the clock themselves, so the first look tells of a loss, also
//     when the process stood still and no timer has fired yet. A context that is made from it ends in the same
//     moment, or when a timer fires;
//   - after the death of a leader, the first in line leads when the lease ends (Config.Lease after the last
//     renewal), and a call later;
//   - fences rise with every term.
//
// # Not guaranteed
//
//   - That f heeds its context. Hand [Election.Fence] to whatever the leader writes to, and refuse smaller fences
//     there: package fence has guards for that.
//   - When Redis loses writes (a flush, a failover) or its clock jumps forward, two may lead until the older
//     one's next heartbeat, at most for a lease. After an operator has ended a term by force, two may lead until
//     the older one has heard of it.
//   - When the clock of a leader's process stands still, two may lead until the older one's next heartbeat, at most
//     for a lease after that clock goes on. On Linux the clock runs through suspend, on other systems not. In a
//     paused virtual machine no clock runs.
//   - That somebody leads while no process reaches the server, or the name is paused.
//
// # Priority
//
// A candidate of a higher priority stands ahead of lower ones, and leads next. It takes nothing from
// the leader, unless it has WantAfter. WantAfter asks the leader whatever the leader's priority is: give it only
// to candidates that should take over.
//
// # Events
//
// The events of an election are those of its lock, and of each term observe.TermBegan and observe.TermEnded, at level info.
// A term may last: it is never told as held long.
//
// # Who leads
//
// [Election.Current] reads who leads, and [Election.Watch] tells each change. Both only read, for any process,
// also for a user that may not write. What they tell was so a moment ago: a process is told of as leader from
// its grant on, a little before it has heard of the grant itself, and one that has died until its lease ends.
package leader
