// Package embedded is a Redis inside this process, for demos and tests.
//
// NEVER USE IT IN PRODUCTION. Nothing is written to disk, nothing is
// replicated, nothing is protected by a password, every command walks over all
// keys, and a malformed request can end the process.
//
// [Start] makes a server that only this process can reach, without a socket.
// [Server.Client] makes the rueidis client for it. [StartListening] also listens on a
// loopback address, for child processes. Their client is
//
//	option, err := rueidis.ParseURL(server.URL())
//	client, err := rueidis.NewClient(option)
//
// The server's clock is the clock of the process: TIME and all expiries follow it. So a
// server of Start works inside a testing/synctest bubble, where that clock is virtual:
// an hour of leases passes in milliseconds, exact to the millisecond. A listening
// server must stay outside of a bubble: its socket freezes virtual time. For tests,
// package berthtest is best.
//
// # How it differs from Redis
//
// The server is miniredis, with a few answers of this package's own.
//
// Stricter than Redis:
//
//   - A script whose keys have different hash tags is refused with CROSSSLOT,
//     as in a Cluster, so that a test finds it before a Cluster does. Those of Berth
//     that are sent to no Cluster are not.
//
// Refused, or not there:
//
//   - RESP3: HELLO 3 is answered as an unknown command, and rueidis falls back to
//     RESP2. So there is no client-side caching. If you write the client's options by
//     hand, set DisableCache.
//   - CLUSTER: it says that it is a single server. Sharded pub/sub, replicas
//     and READONLY are missing, too.
//   - ACL, AUTH, TLS and all other ways to keep a local user out.
//   - AOF, snapshots, CONFIG, WAITAOF, MEMORY limits and eviction: the answer
//     OOM never comes.
//   - INFO has the sections clients and stats only; asking for another is an
//     error. CLIENT has SETNAME and GETNAME only. COMMAND, OBJECT and MEMORY
//     are in parts.
//   - Functions, and in Lua the libraries cmsgpack, struct and bit, and the
//     #! line. A script cannot be killed, however long it runs.
//
// Different in detail:
//
//   - When redis.call fails, the script ends as in Redis and keeps what it
//     wrote, but the error starts with "ERR Error compiling script" and names
//     its kind (such as WRONGTYPE) further back. An error table that a script
//     returns arrives as it is.
//   - A key is gone at its instant of expiry, not a millisecond after it.
//     Outside of a bubble the instant may be off by a fraction of a
//     millisecond, so that PEXPIRETIME may differ by one from what PEXPIREAT
//     was given, and keys may expire between two commands of one script.
//   - HSCAN, SSCAN and SCAN return everything in one page, whatever COUNT says. Every
//     command that needs the order of a sorted set sorts it anew.
//   - cjson turns bytes that are not UTF-8 into U+FFFD.
//   - A subscriber that stops reading stops the whole server with the next
//     message for it.
package embedded
