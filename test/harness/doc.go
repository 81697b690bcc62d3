// Package harness gives the integration tests real Redis servers and a network
// that fails on command.
//
// A server comes from the first of these that can be had:
//
//   - the one that BERTH_TEST_REDIS names (host:port, or a redis:// URL): shared
//     with whatever else uses it, so a test may neither flush, stop nor
//     configure it;
//   - a container, where Docker answers and has the image that BERTH_TEST_IMAGE
//     names (redis:7-alpine by default); nothing is pulled during a test;
//   - a redis-server process, from PATH.
//
// A test that finds none of them fails; it is never skipped. `make test` sees to
// it that one is there.
//
// A [Deployment] is a Redis in one of the topologies that people run: [Single],
// [Valkey], [Cluster] and [Sentinel] are processes of redis-server (Valkey: of
// valkey-server), whatever BERTH_TEST_REDIS says. Its [Spec] is all that a process
// needs to reach it. A Cluster and Sentinel lose masters on demand, a Cluster moves
// slots, and the clock of a single server can be set: a small library, compiled with
// cc once for each user and loaded into the process, adds an offset to it. That is
// for Linux alone. [Container] is a server in a container, where Docker answers; its
// image is made from this machine's redis-server where there is no other. [Embedded]
// is the server of pkg/embedded in this process.
//
// Servers listen on a loopback address, keep nothing on disk, and end with the
// test. Restart, Stop, Cont and Kill do to a private server what operators, the
// kernel and power cuts do to real ones.
package harness
