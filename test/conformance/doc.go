// Package conformance is one suite for every kind of Redis that Berth names: the same
// tests, through the public API alone, on a single Redis and a single Valkey, in a
// Cluster, under Sentinel, in a container, and on the embedded server.
//
// What one of them cannot do is in one table, limits, with the reason and with a proof
// that it is still so. It is printed when the tests have ended, with the topologies
// that could not be had on the machine. Where BERTH_TEST_REPORT names a file, the list
// goes to its end as well, because go test keeps to itself what passing tests print.
package conformance
