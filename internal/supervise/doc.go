// Package supervise runs a command under a hold, and ends it before anyone else
// can hold.
//
// # The end of a hold
//
// The holder may believe in its hold until the local deadline. When no renewal
// has succeeded by the deadline less the grace, the command gets SIGTERM; at
// the deadline SIGKILL. When the hold is over ahead of its deadline, because
// somebody with the right to has ended it or the server has lost it, the
// command gets SIGTERM at once and SIGKILL after the grace. A supervisor that
// was itself stopped until after the deadline sends SIGKILL as soon as it runs
// again.
//
// A renewal that comes in the grace, after SIGTERM, puts the SIGKILL off; the
// SIGTERM cannot be taken back, and counts as the reason for the end.
//
// When somebody asks for the hold back, a line says so, and the command gets a signal of the
// user's choice, once. The hold goes on, and it is for the command to end.
//
// # The process group
//
// The command leads a process group of its own, so that what ends it reaches
// what it started, and so that what a terminal sends arrives once: either the
// terminal sends it to the command's group, or to ours, which passes it on.
// What leaves the group (a daemon) escapes. SIGINT, SIGTERM, SIGHUP and SIGQUIT
// are passed on to the whole group, as a terminal would; SIGUSR1, SIGUSR2 and
// SIGWINCH to the command alone.
//
// Where our input and output are a terminal and we are in its foreground, the
// command's group takes our place there, so that it can read. When it is then
// stopped (Ctrl-Z) we stop as well, for the shell to notice, and the hold ends
// with its lease unless the job is continued before.
//
// # The supervisor's own end
//
// On Linux the command gets SIGKILL when the supervisor ends without it, for
// instance by SIGKILL: nobody would be left to end it in time. This does not
// reach what the command started. On other systems the command goes on, and
// only the fence keeps it from doing harm.
package supervise
