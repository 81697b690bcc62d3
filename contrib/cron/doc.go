// Package berthcron wraps jobs of robfig/cron, so that one of several replicas runs each job.
//
//	n, err := node.New(redis, node.Config{})
//	c := cron.New(cron.WithLocation(time.UTC))
//	hourly, err := cron.ParseStandard("0 * * * *")
//	digest := once.New(n, "digest", berthcron.Around(hourly, c.Location()))
//	c.Schedule(hourly, berthcron.Job(digest, cron.DefaultLogger,
//		func(ctx context.Context, run *once.Run) error { return send(ctx, run.Fence()) }))
//	_, err = n.Check(ctx) // also of what the jobs were made with
//
// Each replica fires by its own clock. The first replica runs the job; the others learn, by package once,
// that the job runs or is done in this period, and skip it. While a job runs on into the next period, no
// other replica begins it.
//
// [Job] makes a job of a function. [Wrapper] is a cron.JobWrapper for an existing job. Each job needs
// its own name and so its own wrapper: do not pass a wrapper to cron.WithChain.
//
//	wrapper := berthcron.Wrapper(digest, logger)
//	c.Schedule(hourly, cron.NewChain(cron.Recover(logger), wrapper).Then(job))
//
// A cron.Job has no context and returns no error. So a wrapped job does not learn of the loss of its hold,
// runs on, and may run twice, and each run that returns counts as a success. The function of Job has a
// context, an error, and a fence for its writes. If a function or a wrapped job panics, the run has failed,
// and the panic goes on: put cron.Recover outside, as above.
//
// # When jobs fire
//
// The replicas' clocks differ, so for one firing the replicas ask at different moments. [Around] puts a period around each
// firing of a schedule, reaching halfway to the firing before and to the firing after. A replica that asks up to half of
// that distance too early or too late, by the server's clock, asks for the same firing. So differing clocks neither double
// nor skip a run, and run.Period() begins before the firing.
//
// A schedule whose text names no time zone uses that of its Cron: pass the location to Around. By cron's rule, a time
// that comes twice in a day, because clocks go back, fires twice, and a time that clocks skip does not fire. once.Daily
// fires once on each day.
//
// With once.Around(every, at) all periods have one length, and every firing must be at a multiple of every after 1970-01-01
// 00:00 UTC, plus at. Too long an every skips firings. With an every shorter than the schedule's, periods between two
// firings may count as missed, and as overdue for the alert BerthRunOverdue.
//
// If two firings of a process fall into one period, and nothing runs for the second one, the logger gets an error, and
// an event of kind fired_twice is sent.
//
// A firing at which no replica runs is not made up for later, since cron asks only when it
// fires.
//
// # Failures
//
// A failed run, and a run of a process that died, may be repeated in its period, up to Attempts times. But a replica that
// has skipped the firing does not ask again. With Wait in the Config, the replicas wait for the outcome and take over. Each
// replica asks once for a firing, so there are at most as many attempts as replicas: a single replica tries again only at
// the next firing. A waiting replica counts as running the job, also for cron.SkipIfStillRunning.
//
// While the server does not answer, a wrapper tries within node.Config.Retry, then skips the firing and reports
// it to the logger.
//
// # Shutdown
//
// Cron.Stop ends no job. To let jobs finish, wait for the context that Stop returns, then close the node. To stop
// all jobs, close the node first; to stop one job, close its once.Job. Both end the contexts of the functions of
// Job, and wait for wrapped jobs.
package berthcron
