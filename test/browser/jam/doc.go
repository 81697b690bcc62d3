// Package jam makes a state in which much stands still: on a real server, by real clients, so that people and browsers
// have something to look at. [Make] makes it, [Jam.Close] ends it.
//
// There is a full semaphore with a long line, and among its holders a process that was killed; three processes in a cycle
// of locks; a pool whose resources all rest; a paused name; a lock held without end by the process that was killed; another
// one held without end by no process; a drain that nobody has ended; a name of a newer form; and what strangers may have written: markup, direction marks, line breaks, names that look like paths.
package jam
