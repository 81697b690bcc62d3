// Package leader has one process of many lead: it runs a function while the process leads, and
// again after a loss.
//
//	leaders, err := leader.New(redis, qlock.Config{}) // no I/O
//	defer leaders.Close(ctx)
//
//	err = leaders.Run(ctx, "scheduler", nil, func(ctx context.Context) error {
//		return schedule(ctx, leaders.Fence(ctx, "scheduler")) // until ctx ends
//	})
//
// The leader of a name is who holds the lock of that name, of package qlock. So line, priority, heartbeat,
// fence, pause, drain and explanation are those of locks: berth lock show NAME shows who leads and who
// stands in line. Who locks the name by qlock takes part. A [Client] has a lock client of its own.
//
// # Model
//
//	         granted              f returns
//	stands ───────────► leads ──────────────► resigns ──► Run returns f's error
//	  ▲  │                │
//	  │  │ refused        │ lost, or wanted back: f's context ends
//	  │  ▼                ▼
//	  │ rests          leaving
//	  │  │                │ f returns; what was wanted is handed on
//	  └──┴────────────────┘
//
// A process stands in line, and waits there while the server does not answer. It leads from the grant on. Before
// anybody else can lead, the context of f has ended:
//
//   - lost: the hold was not renewed in time, or the server has forgotten it, or an operator has ended it. The
//     cause is a *berth.EndError. From then on another process may lead. Run waits until f returns, and stands
//     again.
//   - wanted back: an operator, a drain, or a candidate with [Options.WantAfter] has asked for it. The cause is
//     [ErrWanted]. The process still leads, and nobody else does, until f returns. Then it resigns and stands
//     again, at the end of the line. [Options.KeepWhenWanted] leaves f its context.
//
// Resigning hands on at once: one script ends the hold and grants it to the first in line. So it is too when f
// panics or calls runtime.Goexit, which then goes on through Run.
//
// A candidate is refused by a drain of its process, by the error of a server that does not run the call, as one
// that is full, and by an operator who ends its wait. It rests for a second, during a drain until the drain stops, and stands again at the end of the line.
//
// # What f returns
//
// While the context of f lives, f's return ends Run: with that error, or nil. (With KeepWhenWanted a nil is
// no end where leadership is wanted back.) After the context has ended, what f returns counts for nothing: f
// was told to stop, so an error of then says nothing of the work. Who wants to leave for good ends the context of Run.
//
// When that context ends, Run resigns, waits for f, and returns f's error. If f does not run, Run returns an
// error that matches ctx.Err() and context.Cause(ctx).
//
// # What is promised
//
// While Redis keeps its data and its clock:
//
//   - the contexts of two leaders of a name never live at the same time, by whatever network there is between them;
//   - who looks at the context that f was given, by Err or Done, is told by the clock, also where the process
//     stood still and no timer has fired yet. A context that is made from it ends in the same moment, or as soon
//     as a timer fires;
//   - after the death of a leader the next one leads within Config.Lease, and the time that a call takes;
//   - fences rise with every term.
//
// # What is not promised
//
//   - That f heeds its context. Hand [Client.Fence] to whatever the leader writes to, and refuse smaller ones
//     there: package fence has guards for that.
//   - When Redis loses writes (a flush, a failover) or its clock jumps forward, two may lead until the older
//     one's next heartbeat, at most for a lease.
//   - That somebody leads while the server does not answer for a lease, or the name is paused.
//
// # Priority
//
// A candidate of a higher priority stands ahead of lower ones in line, and leads next. It takes nothing from
// who leads, unless it has WantAfter. WantAfter asks whoever leads, of whatever priority: give it only to
// candidates that should take over.
//
// # Who leads
//
// [Client.Current] reads who leads, and [Client.Watch] tells each change. Both only read, for any process,
// also for a user that may not write. What they tell was so a moment ago. A grant is told before its process has heard
// of it; that of a process that has died is told until its lease ends.
package leader
