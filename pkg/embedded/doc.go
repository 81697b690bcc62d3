// Package embedded runs a Redis inside this process, for demos and tests.
//
// NEVER USE IT IN PRODUCTION. Nothing is written to disk or replicated, there is no password,
// every command walks over all keys, and a malformed request can end the process.
//
// [Start] starts a server without a socket, which only this process can reach. [Server.Client]
// makes a rueidis client of the server. [StartListening] also listens on a loopback address,
// for child processes, which make their client so:
//
//	option, err := rueidis.ParseURL(server.URL())
//	client, err := rueidis.NewClient(option)
//
// TIME and all expiries follow the clock of the process. So a server of Start works inside a
// testing/synctest bubble, where that clock is virtual: an hour of leases passes in
// milliseconds, exact to the millisecond. A listening server must stay outside of a bubble,
// because its socket freezes virtual time. For tests, use package berthtest.
//
// # How it differs from Redis
//
// The server is miniredis, with a few changed answers.
//
// Stricter than Redis:
//
//   - A script whose keys have different hash tags is refused with CROSSSLOT, as in a Cluster,
//     so that a test finds the error before a Cluster does. The scripts that Berth sends to no
//     Cluster are exempt.
//
// Refused or missing:
//
//   - RESP3: HELLO 3 is answered as an unknown command, and rueidis falls back to RESP2. So
//     there is no client-side caching. If you write the client's options yourself, set
//     DisableCache.
//   - CLUSTER: the answer describes a single server. Sharded pub/sub, replicas and READONLY are
//     missing too.
//   - ACL, AUTH, TLS and all other protection against local users.
//   - AOF, snapshots, CONFIG, WAITAOF, memory limits and eviction: the server never answers
//     OOM.
//   - Parts of commands: INFO has only the sections clients and stats, and refuses others;
//     CLIENT has only SETNAME and GETNAME; COMMAND, OBJECT and MEMORY are partial.
//   - Functions; in Lua the libraries cmsgpack, struct and bit, and the #! line. A running
//     script cannot be killed.
//
// Different in detail:
//
//   - When redis.call fails, the script ends as in Redis and its writes stay, but the error
//     starts with "ERR Error compiling script" and has its kind (such as WRONGTYPE) further
//     back. An error table that a script returns arrives unchanged.
//   - A key is gone at the instant of its expiry, not a millisecond later. Outside of a bubble
//     the instant may be off by a fraction of a millisecond, so PEXPIRETIME may differ by 1
//     from the value given to PEXPIREAT, and keys may expire between two commands of one
//     script.
//   - HSCAN, SSCAN and SCAN return everything in one page, whatever COUNT says. Every command
//     that needs the order of a sorted set sorts the set again.
//   - cjson turns bytes that are not UTF-8 into U+FFFD.
//   - A subscriber that stops reading blocks the whole server with the next message for that
//     subscriber.
package embedded
