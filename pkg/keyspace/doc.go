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
// The braces are the hash tag of Redis Cluster, which hashes only the text between them. So all
// keys of a name lie in one slot, and one script may use them all. A semaphore, a lock, a pool,
// a guard and the runs of one name share a slot too, but no key. These are all keys and
// channels, with the type of each key:
//
//	<namespace>:sem:{<name>}:state      string or hash  a semaphore: its thin form, or its values and a record of each claim
//	<namespace>:sem:{<name>}:line       sorted set      of a fat semaphore: its deadlines and places
//	<namespace>:lock:{<name>}:state     string or hash  the same of a lock
//	<namespace>:lock:{<name>}:line      sorted set      the same of a lock
//	<namespace>:pool:{<name>}:state     hash            the same of a pool, and its counts
//	<namespace>:pool:{<name>}:line      sorted set      the same of a pool, and when rests, resources and bindings end
//	<namespace>:pool:{<name>}:items     hash            what is known of each resource
//	<namespace>:pool:{<name>}:free      sorted set      the free resources, in the order in which they came back
//	<namespace>:pool:{<name>}:bindings  hash            which names are bound to which resources
//	<namespace>:fence:{<name>}:state    hash            the field fence: the greatest fence that a guard has admitted
//	<namespace>:once:{<name>}:state     hash            the newest run of a name that runs once in each period, and the newest success
//	<namespace>:notice:{all}:state      hash            what operators say to all clients
//	<namespace>:swarm:{nodes}:state     hash            a record of each node of the swarm
//	<namespace>:swarm:{nodes}:probes    sorted set      when each node is dead, and which are condemned
//	<namespace>:waits:{<0..15>}:names   sorted set      which names somebody waits for, or has just waited for
//	<namespace>:wake:<node>             channel         messages for a node
//
// Every user's string is checked before it becomes part of a key: [New] checks the namespace,
// and callers of [Space.Key] must check the name with [CheckName].
package keyspace
