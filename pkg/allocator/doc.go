// Package allocator shares pools of named resources (proxies, accounts, keys) among
// processes over Redis or Valkey. A process waits in line for a resource, holds it
// under a lease, and gives it back.
//
//	n, err := node.New(redis, node.Config{}) // one for all that the process holds
//	defer n.Close(ctx)
//
//	proxies := allocator.New(n, "proxies", allocator.Config[*Proxy]{Open: dial})
//	change, err := proxies.Add(ctx, []string{"10.0.0.1:3128", "10.0.0.2:3128"}, nil)
//
//	proxy, err := proxies.Allocate(ctx, &allocator.AllocateOptions{Bind: "customer-7"}) // waits in line
//	defer proxy.Release(ctx)
//	use(proxy.Value())
//
// Package node configures a process and all its holds: namespace, label, leases, retries, events, Close, and
// the calls for operators. A [Pool] is one name, with the values that this process makes of its resources; the
// same name is the same pool in every process. A node has one Pool of a name at a time, and [Pool.Close] closes
// only that Pool. An [Allocation] is the handle of a granted claim: a resource and its value.
//
// [New] returns no error: bad arguments of New are returned by each call of the Pool and,
// except for a bad name, by Check of the node.
//
// # Model
//
// Every allocation makes a claim. One script on the server decides about the claim, by the
// server's clock:
//
//	           nobody ahead, and one is free
//	asked for ───────────────────────────────────────► held ◄──► detached
//	    │                                               ▲   Detach, Resume
//	    │ else       first in line, and one is free     │ own call
//	    └──► waiting ──────────────────────────────► granted
//
// A claim ends by Release, by cancellation, at its deadline, or by [node.Operator.Release]. The
// script that ends a hold grants the resource to the first in line. An added resource, and a
// resource whose rest has ended, also goes to the first in line. Claims wait for a pool without
// resources as for any other pool.
//
// A waiting claim has a place, which comes from its ticket and never moves, and a liveness
// deadline: the wait lease (node.Config.Lease) after the last heartbeat of its process. A
// waiting claim that is granted keeps this deadline until its process calls next, so a grant to
// a dead process costs at most the wait lease. No first grant, at once or by a hand-off, is
// longer than the wait lease: a longer Lease, or berth.Forever, begins with the next call of the
// process.
//
// # Resources
//
// A resource is a key of 1 to 1024 bytes of any kind. On the server the resource is in one of
// these states (see [State]; a leaving resource counts as [Leased]):
//
//	        Add, Replace               a claim takes it
//	absent ────────────────► free ──────────────────────────► leased
//	  ▲    Remove, expiry    ││▲▲       given back            ││ │
//	  ├──────────────────────┘││└─────────────────────────────┘│ │
//	  │         Pool.Rest     ││ the rest ends                 │ │
//	  │                       ││                               │ │
//	  │    Remove, expiry     ▼│      given back with a rest   │ │
//	  ├─────────────────── resting ◄───────────────────────────┘ │
//	  │                                                          │
//	  │    given back by its last holder                         ▼
//	  └────────────────────────────────────────────────────── leaving
//
// A leased resource becomes leaving by Remove, by its expiry, or by a Replace without it, and
// becomes leased again by Add, or by a Replace with it.
//
// Free resources stand in a list. Claims take its head ([LeastRecent]), its tail ([MostRecent])
// or any resource ([Random]). A resource that is given back, is added, or has rested goes to
// the tail. A leaving resource stays with its holder, and is gone when it is given back. An
// expiry counts from the last Add or Replace that named the resource, or from the release of a
// holder who called [Allocation.ExpireIn]. [Pool.FreeInOrder] lists the free resources in the
// order in which claims get them. A pool with resources is never forgotten.
//
// With MaxSharers several claims may hold one resource at once, each with its own lease. Such a
// resource is leased, and others may get it while there is room. A Shared pool hands resources
// out in turn and reserves them for nobody: its allocations have no lease.
//
// # Options and defaults
//
// A zero field of a call's [AllocateOptions] takes its value from Config.Defaults, then from the default that its comment
// names. Meta and Attrs of a call replace those of the defaults. A MaxWait or MaxHold of berth.Forever means no limit. A
// call with NoDefaults ignores all Defaults: this is the only way to ask for Priority 0, no Bind, or renewals if the
// defaults say otherwise.
//
// # Operators
//
// [Operator] has the operators' calls that are specific to pools: they change settings, list resources and bindings, and
// inspect a pool. The calls take the name of a pool and open no values. [node.Operator] ends holds by force, asks for
// holds back, pauses, sweeps and drains. Package inspect lists pools, holders and waiters.
//
// # Settings
//
// A pool's [Settings] are stored with the pool and apply to all its processes. A process
// proposes settings in its Config, and the first process sets those that nobody has set. A
// process with other settings uses the stored ones, and an event reports the difference; with
// Config.Strict its calls are refused. [Operator.Set] changes the settings for all processes at
// once, or gives one resource its own cooldown, MaxSharers and BindFor.
//
// # Rests
//
// If the pool has a cooldown (see Settings), a resource rests after every hold, in whichever process and however the hold
// ended. If the holder did not give the resource back, the rest begins at the end of the lease. A longer rest comes from
// AllocateOptions.Cooldown, from the holder's [Allocation.Rest], or from any process's [Pool.Rest]; the rest of a leased
// resource begins when it is given back. If several rests begin together, the longest counts. A rest ends by itself, like a
// lease, without any call.
//
// # Bindings
//
// AllocateOptions.Bind names a binding, such as a customer. The claim gets the resource bound
// to the name if that resource is free. Otherwise the claim gets the next resource, which is
// then bound to the name, for BindFor. A binding is soft: other claims may get the resource. If
// two claims of one binding run at once, the second claim gets another resource, and the
// binding moves to that resource; to share one resource, set MaxSharers.
//
// With AllocateOptions.BindWait a claim waits up to this time for the bound resource if that
// resource is held or rests, and then takes another one; so a customer keeps an account through
// its cooldown. The binding at the claim's arrival counts. If nothing is bound then, or if the
// bound resource leaves the pool, the claim takes any resource, even with berth.Forever: two
// waiting first claims of a customer get two resources.
//
// AllocateOptions.Resource names the only acceptable resource. Claims behind a claim that waits
// for one resource are served meanwhile with other resources.
//
// # Names
//
// A name is valid UTF-8 of 1 to 512 bytes, without braces and without invisible characters such
// as control characters; see keyspace.CheckName. The key of a resource is 1 to 1024 bytes of
// any kind, and the name of a binding 1 to 512 bytes of any kind. Names are compared byte by
// byte. A pool is never forgotten while it has resources or an operator's settings. Before
// users' text becomes part of a name, read the section Names of package qlock.
//
// # Values
//
// Config.Open makes the value of a resource, once, when the resource is first allocated in this
// process. The value stays open for the next allocation of the resource. Config.Close ends the
// value when the resource has left the pool or was not healthy, and when the pool or the node
// closes. Without Open the value is the key. A resource that cannot be opened, or is not
// healthy, is given back and rests for FailureRest. Open goes on for up to OpenTimeout after
// its caller has left, so that a hanging resource is detected.
//
// # Where options live
//
//   - In this process only: Open, Close, Healthy, the values, FailureRest.
//   - With the claim: Lease, MaxHold, Resource, Bind and BindWait, and the BindFor and Cooldown
//     of the call. Processes may differ; each claim uses its own.
//   - With the resource: MaxSharers, expiry, rest, and the resource's own settings by an
//     operator. The last Add or Replace that names a resource sets its expiry; a holder may set
//     the expiry with ExpireIn.
//   - With the pool, for all processes: its settings. Processes never change settings that are
//     set.
//   - With the pool: the turn to ask the Source. One node at a time asks; if it dies, another
//     node asks after RefreshEvery.
//
// # Leases
//
// An allocation renews by itself every third of its lease, or of the wait lease if that is
// shorter, until it is released, or the pool or the node is closed. Its local deadline is the
// start of the last request that the server answered, plus the remaining time in that answer,
// minus a margin of 2 ms and 1 % of the lease.
//
// The allocation's context ends when the local deadline passes, or when the server says that
// the resource is not held. The cause is berth.ErrLost if a renewal was due, berth.ErrExpired
// at the allocation's own limit (MaxHold, or the lease under NoRenew), and berth.ErrReleased if
// the resource was given back.
//
// [Allocation.Err] and every call of an allocation compare the clock themselves, and so do Err
// and Done of the contexts from an Allocation or Do. A context derived from one of these ends
// at the same moment, or when a timer fires.
//
// [Allocation.RenewFor] gives an allocation another lease, and takes no time away: with a
// shorter lease the deadline stays until the new lease reaches further.
//
// # Guarantees
//
// While Redis keeps its data and its clock:
//
//   - no resource is held by more than one claim, or more than its MaxSharers, at once, except
//     in Shared pools;
//   - claims of one priority are granted in the order of their tickets, and none passes the
//     first in line, while their processes send heartbeats;
//   - a running process learns of the loss of its hold before another claim can get the
//     resource;
//   - when a process ends for any reason, its resources come free within the lease, except
//     those of detached holds and of holds without end;
//   - no resource is lost: each is free, leased or resting;
//   - a late release by a holder whose hold had ended changes nothing;
//   - an allocation that was cancelled, or whose answer was lost, holds nothing for
//     longer than the wait lease;
//   - every grant of a pool, including those of Swap, has a greater fence than all grants
//     before it;
//   - a resource whose record another program has overwritten is [Damaged] and blocks no other
//     resource.
//
// # Not guaranteed
//
//   - A process that is suspended past its lease learns of the loss only at its first call
//     after waking. The same is true of a goroutine that does not check its context. Pass
//     [Allocation.Fence] to the system behind the resource, and refuse smaller fences there,
//     compared per resource.
//   - If Redis loses writes (by a flush, a failover, a restart without its data) or its clock
//     jumps forward, two claims may hold one resource until the older holder's next heartbeat,
//     for at most one lease.
//   - A flush also removes the resources, their rests and the bindings. A Source restores the
//     resources: a process that waits or allocates asks it when the pool is empty. Without a
//     Source somebody must Add the resources again; waiting claims go on waiting.
//   - After node.Operator.Release two holders may use the resource until the old holder learns
//     of the release.
//   - Lowering MaxSharers ends no hold.
//   - A Shared pool only guarantees that resources are handed out in turn.
//
// # When calls fail
//
// Every script can be repeated, and a repeated claim gets the same answer. A call that the
// server did not answer or did not run (LOADING, CLUSTERDOWN, READONLY and the like) is
// repeated: an Allocate until its wait ends, other calls within node.Config.Retry. Other errors
// of the server, such as OOM or NOPERM, end a call at once. When the caller's context ends,
// Allocate returns at once; the node removes the claim in the background, and [node.Node.Close]
// waits for the removal.
//
// Add, Remove and Replace run in atomic steps of up to 200 resources. A failure leaves the
// earlier steps done, and the call may be repeated. Of several concurrent Replaces the newest
// counts, and the others return [berth.ErrOvertaken]. A Replace overtaken by a Remove also
// returns berth.ErrOvertaken, as does a Rest or a Remove of a resource that another call has
// changed since this call began.
//
// # Errors
//
// Match errors with errors.Is against the sentinels of package berth. A claim without a
// resource gives [berth.ErrNotAcquired], with [berth.ErrBusy] if other claims were the reason.
// An ended hold gives [berth.ErrLost] or [berth.ErrExpired], which match [berth.ErrNotHeld], or
// [berth.ErrReleased]. A resource that is not in the pool gives [berth.ErrAbsent], a call that
// another operator's call has overtaken [berth.ErrOvertaken], and a refused value
// [berth.ErrInvalidConfig]. A *berth.AcquireError has the reason and the counts, a
// *berth.ConfigError the field.
//
// docs/semantics.md lists the guarantees and the effects of every failure.
package allocator
