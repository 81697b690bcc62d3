// Package berthcron wraps the jobs of robfig/cron, so that one process runs each.
//
//	n, err := node.New(redis, node.Config{})
//	c := cron.New(cron.WithLocation(time.UTC))
//	hourly, err := cron.ParseStandard("0 * * * *")
//	digest := once.New(n, "digest", berthcron.Around(hourly, c.Location()))
//	c.Schedule(hourly, berthcron.Job(digest, cron.DefaultLogger,
//		func(ctx context.Context, run *once.Run) error { return send(ctx, run.Fence()) }))
//	_, err = n.Check(ctx) // also of what the jobs were made with
//
// Each replica fires at the moment at which its own clock says so. The job runs in the one that comes first;
// the others find, by package once, that it runs or has been done in this period, and skip it. A job that
// runs on into the next period is not begun elsewhere meanwhile, either.
//
// [Job] makes a job of a function. [Wrapper] is a cron.JobWrapper, for a job that there is already. Each
// job needs a wrapper of its own, since it has a name of its own: do not give one to cron.WithChain.
//
//	wrapper := berthcron.Wrapper(digest, logger)
//	c.Schedule(hourly, cron.NewChain(cron.Recover(logger), wrapper).Then(job))
//
// A cron.Job has no context and returns no error. So a wrapped job does not hear that its hold was lost,
// runs on, and may run twice; and each of its runs that returns counts as a success. The function of Job has
// both, and a fence for what it writes. If it or a wrapped job panics, the run has failed, and the panic goes
// on: put cron.Recover outside, as above.
//
// # When jobs fire
//
// The replicas' clocks are apart, so for one firing they come at different moments. [Around] has the periods lie around the
// firings of a schedule: from halfway after the firing before to halfway to the next one. A replica that comes up to half of
// that distance earlier or later, by the server's clock, comes for the same firing. Then clocks that are apart neither double a run nor skip one.
// So run.Period() begins before the firing.
//
// A schedule whose text names no zone has that of its Cron: give Around the location. In it the time of a day that has it
// twice, as the clocks go back, fires twice, and one that a day does not have not at all: that is cron's rule.
// once.Daily has each day once.
//
// By once.Around(every, at) the periods are of one length, and every firing must be at a multiple of every after 1970-01-01
// 00:00 UTC, plus at. An every that is too long skips firings. With a shorter one than the schedule's, periods
// between two firings may count as missed, and as overdue for the alert BerthRunOverdue.
//
// Two firings of a process that fall into one period are told, if nothing runs for the second one: to the logger as an
// error, and as an event of kind fired_twice.
//
// A job that is not done when its period begins, because no replica ran, is not made up for
// later: cron comes only when it fires.
//
// # Failures
//
// What has failed, and what was run by a process that died, may be run again in its period, up to
// Attempts times. But a replica that skipped the firing does not come again: set Wait in the Config,
// and the replicas wait for the outcome and take over. Each replica comes once for a firing, so there are
// no more attempts than replicas: a single replica tries again only at the next firing. A replica that waits counts as one whose job runs, for
// cron.SkipIfStillRunning too.
//
// While the server does not answer, a wrapper tries for as long as node.Config.Retry says, and skips the firing.
// The logger is told.
//
// # Shutdown
//
// Cron.Stop ends no job. To let jobs finish, wait for the context that Stop returns, then close the node. To
// stop them, close the node first, or the once.Job to stop one: that ends the contexts of the functions of Job, and
// waits for wrapped jobs.
package berthcron
