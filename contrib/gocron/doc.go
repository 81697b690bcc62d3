// Package berthgocron has a locker and an elector for gocron, over Berth.
//
//	n, err := node.New(redis, node.Config{})
//	locker := berthgocron.NewLocker(n, once.Config{})
//	_, err = n.Check(ctx) // also of what the locker was made with
//	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	locker.Watch(s)
//	_, err = s.NewJob(gocron.CronJob("0 * * * *", false), gocron.NewTask(digest),
//		gocron.WithName("digest"),
//		gocron.WithEventListeners(gocron.AfterJobRunsWithError(locker.Failed)))
//
// gocron asks its Locker before each run of a job, by the job's name alone, and each replica asks at
// the moment at which its own clock fires. A lock that only locks is not enough: a short job is over,
// and its lock released, before the next replica asks. A [Locker] keeps the period too, by package
// once: a job that has been done in the period that it is now is not run again.
//
// Give each job a name by gocron.WithName, the same in all replicas. The default, the name of
// its function, changes when the code moves. Shut the scheduler down before you close the node.
//
// # When jobs fire
//
// The replicas' clocks are apart, so for one firing they ask at different moments. A Locker that watches the scheduler
// has the periods of a job lie around the firings of its schedule: from halfway after the firing before to halfway to the next
// one. A question up to half of that distance earlier or later, by the server's clock, belongs to the same firing. Then clocks
// that are apart neither double a run nor skip one. So the period of a run begins before the firing. See [Locker.Watch]
// for the schedules from which no periods can be derived.
//
// By [once.Around](every, at) the periods are of one length, and every firing must be at a multiple of every after 1970-01-01
// 00:00 UTC, plus at. An every that is too long skips firings. With a shorter one than the schedule's, periods
// between two firings may count as missed, and as overdue for the alert BerthRunOverdue.
//
// Two firings of a process that fall into one period are told, if nothing runs for the second one: by the error of Lock, and
// by an event of kind fired_twice, which the node logs.
//
// A gocron.DurationJob fires at a distance from the start of its process: each replica at moments of its own, unless
// gocron.WithStartAt gives all the same start. Then there is one run in each period, by whoever asks first.
//
// A job that is not done when its period begins, because no replica ran, is not made up for
// later: gocron asks only when it fires.
//
// # What is recorded
//
// gocron unlocks after every run, and does not say how the run ended. So a run counts as a success
// unless [Locker.Failed] was called before, as the listener of AfterJobRunsWithError. A panic is a
// failure only if there is a listener of AfterJobRunsWithPanic too; without one the process ends, after
// its run was recorded as a success. A job that BeforeJobRunsSkipIfBeforeFuncErrors skips counts as
// done, unless that function calls Failed. A job that fails because Shutdown has ended its context
// counts as stopped.
//
// gocron does not say which run of a job has failed either. Two runs of a job overlap in a process when the older one
// has lost its hold and works on. A failure then counts for the run that gocron unlocks next, for gocron unlocks a run
// right after the listeners of that run. A listener that does more than call Failed should call Failed last.
//
// What has failed, and what was run by a process that died, may be run again in its period, up to
// Attempts times. But a replica that skipped the firing does not come again: set Wait in the Config, and
// the replicas wait for the outcome and take over. A replica that waits counts as one whose job runs, for
// gocron's limits too. Each replica asks once for a firing, so there are no more attempts than replicas: a
// single replica tries again only at the next firing.
//
// # In a job
//
// The context that gocron gives a job does not end when the hold is lost. [Locker.Current] has the run,
// with a context that does, with the period, and with a fence for what the job writes.
//
// # Errors
//
// While the server does not answer, Lock tries for as long as node.Config.Retry says, and the job is
// skipped. AfterLockError is the listener that hears of it; errors other than [ErrSkipped] should be seen by
// somebody.
//
// # Elector or locker
//
// With an elector gocron asks no locker. An [Elector] lets one process run all jobs, by package leader, and
// costs no call to the server when a job fires:
//
//	elector := berthgocron.NewElector(n, "scheduler", leader.Config{})
//	go func() { stopped <- elector.Run(ctx) }()
//	s, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
//
// The elector's name is that of a lock, as a job's is: give it one that no job has. An elector keeps no
// periods: a replica that becomes the leader just after a job was run, and whose clock is
// behind, runs it again. A firing at which nobody leads is skipped. A job that runs when leadership ends
// goes on, and the next leader may run it beside.
package berthgocron
