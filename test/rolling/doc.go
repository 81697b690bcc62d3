// Package rolling tests that two releases of Berth run side by side on the same
// names, as they do during a rolling deploy, and that one which meets a newer format
// than its own writes nothing.
//
// The scripts of each release are kept in testdata/<version> as a server gets them,
// each with its header, beside a list of their checksums; `make keep-scripts
// VERSION=v1.2.3` adds a release. A process of the previous release is a process of
// today on a connection that sends the kept scripts instead of those of today: what
// two releases share is the data, and only scripts touch it.
//
// Until a version is released, the tests keep the scripts of today in a temporary folder,
// by the same target, and these stand for the previous release.
package rolling
