// Package berthgocron provides a locker and an elector for gocron, based on Berth.
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
// gocron asks its Locker before each run of a job, with only the job's name, and each replica asks
// when its own clock fires. A plain lock is not enough: a short job ends and releases its lock before
// the next replica asks. A [Locker] also stores the period, by package once: a job that is done in
// the current period does not run again.
//
// Give each job a name by gocron.WithName, the same in all replicas. The default, the name of
// its function, changes when the code moves. Shut the scheduler down before you close the node.
//
// # When jobs fire
//
// The replicas' clocks differ, so for one firing the replicas ask at different moments. A Locker that watches the scheduler
// puts a period around each firing of a job's schedule, reaching halfway to the firing before and to the firing after. A
// question up to half of that distance too early or too late, by the server's clock, belongs to the same firing. So
// differing clocks neither double nor skip a run, and the period of a run begins before the firing. See [Locker.Watch] for
// the schedules from which no periods can be derived.
//
// With [once.Around](every, at) all periods have one length, and every firing must be at a multiple of every after
// 1970-01-01 00:00 UTC, plus at. Too long an every skips firings. With an every shorter than the schedule's, periods
// between two firings may count as missed, and as overdue for the alert BerthRunOverdue.
//
// If two firings of a process fall into one period, and nothing runs for the second one, Lock returns an error, and an
// event of kind fired_twice is sent, which the node logs.
//
// The firings of a gocron.DurationJob depend on the start of its process: each replica fires at moments of its own,
// unless gocron.WithStartAt gives all the same start. Then each period has one run, by the first replica that asks.
//
// A firing at which no replica runs is not made up for later, since gocron asks only when it
// fires.
//
// # Recorded outcomes
//
// gocron unlocks after every run, and does not say how the run ended. So a run counts as a success
// unless [Locker.Failed] was called before, as the listener of AfterJobRunsWithError. A panic is a
// failure only if there is a listener of AfterJobRunsWithPanic too; without one the process ends, after
// its run was recorded as a success. A job that BeforeJobRunsSkipIfBeforeFuncErrors skips counts as
// done, unless that function calls Failed. A job that fails because Shutdown has ended its context
// counts as stopped.
//
// gocron also does not say which run of a job has failed. Two runs of a job overlap in a process if the older run has
// lost its hold and works on. A failure then counts for the run that gocron unlocks next, since gocron unlocks a run
// right after that run's listeners. A listener that does more than call Failed should call Failed last.
//
// A failed run, and a run of a process that died, may be repeated in its period, up to Attempts times. But
// a replica that has skipped the firing does not ask again. With Wait in the Config, the replicas wait for
// the outcome and take over. A waiting replica counts as running the job, also for gocron's limits. Each
// replica asks once for a firing, so there are at most as many attempts as replicas: a single replica
// tries again only at the next firing.
//
// # In a job
//
// The context that gocron gives a job does not end when the hold is lost. [Locker.Current] returns the
// run, which has a context that ends with the hold, the period, and a fence for the job's writes.
//
// # Errors
//
// While the server does not answer, Lock tries within node.Config.Retry, and then the job is skipped. The
// listener AfterLockError receives the error; log all errors other than [ErrSkipped].
//
// # Elector or locker
//
// With an elector gocron asks no locker. An [Elector] makes one process run all jobs, by package leader,
// and needs no call to the server when a job fires:
//
//	elector := berthgocron.NewElector(n, "scheduler", leader.Config{})
//	go func() { stopped <- elector.Run(ctx) }()
//	s, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
//
// The elector's name is the name of a lock, like a job's name: choose one that no job has. An elector
// stores no periods: a replica that becomes the leader just after a run, and whose clock is behind, runs
// the job again. A firing without a leader is skipped. A job that runs when leadership ends goes on, and
// the next leader may run the job at the same time.
package berthgocron
