// Package watch reads for those who look: a page, a terminal. However many look at the same, the server is read once,
// and no more often than each kind of view allows. What is looked at no more is read no more.
//
// A [Watcher] has a topic for each thing that is looked at, with a loop of its own while somebody looks. A [Feed] is one
// who looks at a topic.
package watch
