// Package berthcron wraps the jobs of robfig/cron, so that one process runs each.
//
//	n, err := node.New(redis, node.Config{})
//	digest := once.New(n, "digest", once.Around(time.Hour, 0))
//	c := cron.New(cron.WithLocation(time.UTC))
//	_, err = c.AddJob("0 * * * *", berthcron.Job(digest, cron.DefaultLogger,
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
//	hourly := berthcron.Wrapper(digest, logger)
//	_, err = c.AddJob("0 * * * *", cron.NewChain(cron.Recover(logger), hourly).Then(job))
//
// A cron.Job has no context and returns no error. So a wrapped job does not hear that its hold was lost,
// runs on, and may run twice; and each of its runs that returns counts as a success. The function of Job has
// both, and a fence for what it writes. If it or a wrapped job panics, the run has failed, and the panic goes
// on: put cron.Recover outside, as above.
//
// # When jobs fire
//
// The replicas' clocks are apart, so for one firing they come at different moments. A wrapper takes the
// middle of a period for the moment of firing, by the Config of [once.Around]: who comes up to half of every earlier or
// later, by the server's clock, comes for the same firing. Then clocks that are apart neither double a run nor skip one.
// So run.Period() begins half of every before the firing: the moment of the firing itself, the same in
// each attempt, is run.Period().Start.Add(every / 2).
//
// So every firing must be at a multiple of every after 1970-01-01 00:00 UTC, plus at. A schedule does not say
// that of itself: say it by Around.
//
//	schedule                              every        at
//	"*/5 * * * *"                         5 min        0
//	"0 * * * *", "@hourly"                1 h          0
//	"30 * * * *"                          1 h          30 min
//	"0 2 * * *", in UTC                   24 h         2 h
//	"0 2 * * 1", a Monday, in UTC         168 h        98 h (the week begins on Thursday)
//	any other of five fields, at most     1 min        0
//
// Take the longest every that fits: it forgives the most, and package once tells by its events
// which periods were missed. With a shorter every than the schedule's, periods between two firings
// may count as missed, and as overdue for the alert BerthRunOverdue, and once.Job.Last forgets a run
// after two periods. An every that is too long skips firings. A daily job in a time zone with summer
// time moves by an hour, which a period of a day forgives.
//
// "@every 5m" fires at a distance from the start of its process: each replica at moments of its own. Then
// there is one run in each period, by whoever comes first, but a firing that is close to the end of a
// period may be counted for the next. Take "*/5 * * * *".
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
