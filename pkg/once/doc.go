// Package once runs a job once in each period, across all processes that ask for it.
//
//	n, err := node.New(redis, node.Config{Logger: slog.Default()}) // what fails in Run is told there
//	defer n.Close(ctx)
//
//	digest := once.New(n, "digest", once.Config{Every: time.Hour})
//	result, err := digest.Do(ctx, func(ctx context.Context, run *once.Run) error {
//		return send(ctx, run.Period(), run.Fence())
//	})
//
// [Job.Do] asks once, for the current period: use it in a program started by cron. [Job.Run] asks in each
// period until its context ends: use it in a long-running program. [Job.Begin] is for callers that cannot
// pass a function. [Job.Last] reads the results of the runs.
//
// [New] returns no error: bad arguments of New are returned by each call of the Job, and by Check of the
// node. Call Check when the program starts. Check also refuses a server that evicts keys, which may forget
// that a period is done.
//
// # Model
//
// Periods follow each other without gaps, by the server's clock; the clocks of the processes do not
// matter. A run of a period holds the lock of the name; see package qlock. Beside the lock the server
// stores the run that began last and the newest successful run. One script begins a run, and one script
// ends it:
//
//	              begin                        f succeeded
//	(not yet) ────────────► begun ──────────────────────────► done: nobody begins again
//	     ▲                    │  f failed, or the process died
//	     ├────────────────────┤  while attempts are left
//	     └────────────────────┘  its own process stopped it: that is no attempt
//
// A process learns by one read that its period is done. While another process runs the period, a call
// returns [Running] or, with Config.Wait, stands in line. A waiting call returns the outcome, or takes
// over after the run has failed or the lease of a dead process has ended. A call is for the period in
// which it was made, and never for the next one: if that period ends before the call can begin, the
// error is [ErrLate].
//
// Since the lock is an ordinary one, package inspect, the operators' calls (pause, drain, forced
// release) and all events of a lock work for runs too. Do not lock the same name for another purpose.
//
// The outcome is stored before the lock is released. While the server does not answer, the lock
// stays held, and the process sends the outcome again.
//
// # Moments
//
// With a [Schedule], such as that of [Daily], a period surrounds each moment at which the job fires, and reaches halfway to
// the neighboring moments. The process computes the moments, and the server's clock selects the current period. Since
// lengths differ, the process tells the server when the period starts and ends, and when the two following periods end.
// Job.Run begins at the moment, or as soon as it can before the end of the period; a call of Do or Begin is for the nearest
// moment, before or after.
//
// The schedules of two processes may differ, during a deploy or because of other releases of the time zone data. Two of
// their periods count as the same if each reaches the other's middle: then one run does both. A success also counts for all
// periods that started earlier, as described below: if one name runs Every hour and Daily, the daily run may never happen.
// The event settings_differ reports such differences.
//
// # Settings
//
// All processes must use the same Every and Offset, or the same Schedule, and the same Attempts for a name. During a deploy
// that changes these settings, each call uses its own. A success then counts for all periods that started earlier and, if
// the Offset differs, for all periods that overlap its own. So a new Offset skips at most one period, and runs nothing
// twice.
//
// A call whose period was done with other settings sends an event of kind settings_differ. If two values of Every stay in
// use, the longer period may never run. The command berth run --once has half of Every as its default Offset.
//
// A run that never returns keeps its name forever, since its lease is renewed. Limit each run by its
// context or by Config.MaxHold.
//
// # Guarantees
//
// While the server keeps its data and its clock:
//
//   - at most one success is stored for each period;
//   - no run begins while another run of the name holds the lock, or after a success in the period;
//   - at most Attempts runs of a period begin, not counting stopped runs;
//   - each run has a greater fence than all runs before it;
//   - a lost run is taken over within the lease, if a call waits and attempts are left.
//
// # Not guaranteed
//
//   - A single run. A job runs twice if its process lost the lease before it could report its success,
//     because it died, was stopped, was cut off, or ignored its context. A job also runs twice if the
//     server lost the outcome (by a flush, an eviction or a failover), or if the server's clock went
//     back by more than a period and a minute. The second run has a greater fence, or a smaller one if
//     its call was on its way when the server lost the outcome. Pass [Run.Fence] to the systems that the
//     job writes to, and refuse smaller fences there; see package fence.
//   - A run in every period. Nothing runs in a period in which nobody asks, or in which the lock is paused
//     or held for another purpose. The next run reports missed periods by an event of kind missed; if that
//     run dies or is stopped, the run after it reports them again. After each beginning and end of a run,
//     the server keeps the record until the end of the period after the next: a longer gap is not reported.
//   - A time within the period at which the job runs.
//
// # Errors
//
// This package has [ErrUsedUp] and [ErrLate]; the other errors are those of package berth. ErrNotAcquired
// says that the lock was not granted, for example because it is paused (ErrBusy) or this process drains
// (ErrDraining), or that the context ended before a run could begin. ErrUnavailable says that the server
// did not answer, ErrInvalidConfig that a value was refused. The error is fence.ErrStale if another run
// has overtaken the outcome of a run.
package once
