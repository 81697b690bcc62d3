// Package keyspace builds every key and channel that Berth uses.
//
// A key is
//
//	<namespace>:<kind>:{<name>}:<part>
//
// such as berth:sem:{gpu}:state, and the channel on which a node is woken is
//
//	<namespace>:wake:<node>
//
// The braces are the hash tag of Redis Cluster: only what stands between them
// is hashed, so all keys of a name lie in one slot, and one script may use
// them all. Semaphore, lock, pool and guard of one name share a slot, too, but
// no key.
//
// No string of a user reaches a key unchecked: [New] checks the namespace, and
// whoever calls [Space.Key] has checked the name with [CheckName] before.
package keyspace
