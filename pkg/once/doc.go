// Package once runs a job once in each period, over all processes that ask for it.
//
//	n, err := node.New(redis, node.Config{Logger: slog.Default()}) // what fails in Run is told there
//	defer n.Close(ctx)
//
//	digest := once.New(n, "digest", once.Config{Every: time.Hour})
//	result, err := digest.Do(ctx, func(ctx context.Context, run *once.Run) error {
//		return send(ctx, run.Period(), run.Fence())
//	})
//
// [Job.Do] asks once, for the period that it is now, as a program does that cron starts. [Job.Run] asks in
// each period until its context ends, as one does that goes on. [Job.Begin] is for callers who
// cannot hand over a function. [Job.Last] says what has become of the runs.
//
// [New] returns no error: each call of a Job that cannot be used says what is wrong, and so does Check of the
// node. Call Check when the program starts. It also finds a server that evicts keys, which may forget that a
// period is done.
//
// # Model
//
// Periods follow each other without gaps, by the server's clock: the clocks of the processes do not
// matter. A run of a period stands under the lock of the name, see package qlock: who holds the lock may
// run. Beside the lock the server keeps what has become of the runs: of the one that began last, and of
// the newest that succeeded. One script begins a run, and one ends it:
//
//	              begin                        f succeeded
//	(not yet) ────────────► begun ──────────────────────────► done: nobody begins again
//	     ▲                    │  f failed, or the process died
//	     ├────────────────────┤  while attempts are left
//	     └────────────────────┘  its own process stopped it: that is no attempt
//
// A process that finds its period done has sent one read. While somebody is at it, a call returns
// [Running], or stands in line with Config.Wait. Whoever waits hears of the outcome, or takes over when
// the run has failed, or when the lease of a process that died is over. A call is for the period in
// which it was made, and never for the next one: if that is over before the call can begin, the error is
// [ErrLate].
//
// Because the lock is an ordinary one, package inspect, the operators' calls (pause, drain, force
// release) and all events of a lock are there for runs too. Only the lock's name is shared: do not lock
// it for something else.
//
// The outcome is kept before the lock is released. While the server does not answer, the lock stays
// held, and the outcome is told again.
//
// # Moments
//
// With a [Schedule], as [Daily] gives it, a period lies around each moment at which the job fires, and reaches halfway to the
// moments beside. Its process knows the moments, and the server's clock says which period it is; the server is told when the period
// starts and ends, and when the two after it end, for lengths differ. Job.Run begins at the moment, or as soon as it can up to the end of
// the period; a call of Do or Begin is for the moment that is nearest, before or after.
//
// Processes whose schedules differ, as during a deploy, or whose zones come from other releases of the data, share a moment where
// each of two periods reaches the other's middle: what one has done the other does not do again. A period that starts later
// is done for all earlier ones, as below: of a job Every hour and Daily, the day may never run. The event settings_differ tells it.
//
// # Settings
//
// All processes give a name the same Every and Offset, or Schedule, and the same Attempts. During a deploy that changes them each call
// goes by its own: what is done for a period that starts later is done for all earlier ones, and with another Offset
// what is done for a period is done for those that it reaches into. So a new Offset skips up to a
// period, and runs nothing twice. A call whose period was done by other settings sends an event of kind
// settings_differ: of two Everys that are both in use, the longer one may never run. The command berth
// run --once has half of Every as its default Offset.
//
// A run without an end keeps its name for good, as it renews the lease. Bound it: by its context, or by
// Config.MaxHold.
//
// # Guarantees
//
// While the server keeps its data and its clock:
//
//   - in each period at most one success is kept;
//   - no run begins while another one of the name holds its lock, nor after a success of the period;
//   - no more runs of a period begin than Attempts, not counting those that were stopped;
//   - each run has a greater fence than all before;
//   - a run that was lost is taken over within the lease, if somebody waits and attempts are left.
//
// # Not guaranteed
//
//   - A job is done twice if its process lost the lease before it could say that it had succeeded: it
//     died, stood still, was cut off, or did not heed its context. Or if the server lost the outcome: by
//     a flush, an eviction, or a failover. Or if its clock went back by more than a period and a minute.
//     The second run has the greater fence; or a smaller one, if its call was on its way when the server
//     lost the outcome. Pass [Run.Fence] to whatever the job writes, and refuse smaller ones there: see
//     package fence.
//   - Nothing is done in a period in which nobody asks, or in which the lock is paused or held for
//     something else. The next run tells of it by an event of kind missed, and the one after it too
//     if that one has died or was stopped. The server remembers until the end of the period after the next,
//     counted from when a run last began or ended: of a longer gap nothing is told.
//   - When in its period a job runs.
//
// # Errors
//
// ErrUsedUp and ErrLate are of this package. The others are those of package berth: ErrNotAcquired if the
// lock could not be had, as while it is paused (ErrBusy) or this process drains (ErrDraining), or if the
// context has ended before a run could begin;
// ErrUnavailable if the server did not answer; ErrInvalidConfig if a value was refused. An outcome that
// another run has made void is fence.ErrStale.
package once
