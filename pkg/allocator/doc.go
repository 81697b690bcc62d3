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
// Package node has what concerns a process and all that it holds: namespace, label, leases,
// retries, events, Close, and the calls for operators. A [Pool] is one name, with what this process
// makes of its resources; the same name is the same pool in every process. A node has one Pool of a name at a
// time, and [Pool.Close] ends that one alone. An [Allocation] is what a claim holds: a resource, and its value.
//
// [New] has no error: each call returns what is wrong with the arguments of New, and so does
// Check of the node, but for a bad name.
//
// # Model
//
// Every allocation is a claim. One script on the server decides about it, by the
// server's clock:
//
//	           nobody ahead, and one is free
//	asked for ───────────────────────────────────────► held ◄──► detached
//	    │                                               ▲   Detach, Resume
//	    │ else       first in line, and one is free     │ own call
//	    └──► waiting ──────────────────────────────► granted
//
// A claim ends by Release, by a cancel, at its deadline, or by [node.Operator.Release]. The
// same script hands its resource to the first in line. A resource that is added, or has
// rested, goes to the first in line too. A pool without resources is waited for like
// any other.
//
// A waiting claim has a place, which comes from its ticket and never moves, and a
// liveness deadline: the wait lease, node.Config.Lease, counted from the last heartbeat of
// its process. A grant by a hand-off keeps that deadline until the claimant's own next
// call. So a grant to a process that is gone costs no more than the wait lease. No
// first grant is longer than the wait lease: a longer Lease, and berth.Forever, begin
// with the claimant's next call.
//
// # Resources
//
// A resource is a key: any bytes, 1 to 1024. The server has it in one of these states
// (see [State]; one that is leaving is [Leased]):
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
// From leased to leaving: Remove, an expiry, a Replace that does not name it; and back:
// Add, or a Replace that does.
//
// Free resources stand in a list. Claims take its head ([LeastRecent]), its tail
// ([MostRecent]) or any ([Random]). A resource that comes back, is added, or has rested
// goes to the tail. A leaving one stays with its holder, and is gone when it comes
// back. An expiry is counted from the last Add or Replace that named the resource, or from
// the release of a holder who asked for it with [Allocation.ExpireIn].
// [Pool.FreeInOrder] lists the free ones in the order in which claims get them.
// While a pool has resources it is kept for good.
//
// With Config.MaxSharers several claims hold one resource at once, each with a
// lease of its own. The resource is leased then, and others may get it while there is
// room. A pool that is Shared hands resources out in turn and keeps them from nobody:
// its allocations have no lease.
//
// # Options and defaults
//
// [AllocateOptions] say how one allocation goes. A field that a call leaves zero comes
// from Config.Defaults, then from the default that the field's comment names. Meta and Attrs of a call replace those of the defaults.
// berth.Forever is a MaxWait or a MaxHold without bound. A call with NoDefaults ignores
// all Defaults: only so can it say Priority 0, no Bind, or that it renews although the
// defaults have NoRenew.
//
// # Operators
//
// [NewOperator] has the calls for operators that only pools have. It changes settings, lists resources and bindings, and
// inspects a pool. It takes the name of a pool, and opens no values. [node.Operator] ends holds by force, asks for them,
// pauses, sweeps and drains. Package inspect counts, and shows pools, holders and waiters.
//
// # Settings
//
// What all processes that use a pool go by is stored with it: see [Settings]. A process says
// what it would like in its Config; the first one sets what nobody has set. Whoever says
// otherwise goes by what is stored, and an event reports the difference, or is refused with
// Config.Strict. [Operator.Set] changes the settings for all, at once, or gives one resource a
// cooldown, a number of sharers and a BindFor of its own.
//
// # Rests
//
// Where the pool has a cooldown, see Settings, a resource rests after every hold, whichever
// process had it and however it ended. AllocateOptions.Cooldown asks for a longer one. If nobody gave the resource back, the rest begins at the end
// of the lease. The holder may ask for a longer rest with [Allocation.Rest]. Anybody
// may with [Pool.Rest]; the rest of a leased resource begins when it comes back. Of
// rests that begin together the longest counts. The end of a rest is a deadline like
// that of a lease: nobody has to call.
//
// # Bindings
//
// AllocateOptions.Bind names a binding, a customer for example. The claim gets the
// resource that is bound to the name if that is free. If not, it gets the resource of
// its turn, which is bound to the name from then on, for BindFor. A binding is soft: it
// keeps the resource from nobody. If two claims of one binding run at once, the second gets
// another resource, and the binding moves to that one; to share one resource, set MaxSharers.
//
// With AllocateOptions.BindWait a claim waits so long for the bound resource while that is
// held or rests, and takes another one only then; so a customer keeps an account through its
// cooldown. What counts is what the name is bound to when the claim comes. Where nothing is
// bound then, or the bound resource leaves the pool, the claim takes any, also with
// berth.Forever: two first claims of a customer that both wait get two resources.
// AllocateOptions.Resource names the only resource that will do. Whoever stands behind such
// claims is served meanwhile with other resources.
//
// # Names
//
// A name is valid UTF-8 of 1 to 512 bytes, without braces and without characters
// that cannot be seen, such as control characters. keyspace.CheckName has the rule. The key
// of a resource is any bytes, 1 to 1024, and the name of a binding any bytes, 1 to 512.
// A pool with resources is kept for good, and so is one that an operator has set something
// of. Names are compared byte by byte. Package qlock says with what care text that strangers
// choose becomes part of a name.
//
// # Values
//
// Config.Open makes the value of a resource, once, when the resource is first
// allocated in this process. The value stays open for the next allocation of the
// resource. Config.Close ends it when the resource has left the pool, when it was
// not healthy, or with the pool or the node. Without Open the value is the key. A resource that
// cannot be opened, or is not healthy, is given back and rests for FailureRest. Open
// goes on after its caller has left, for up to OpenTimeout, so that a resource that
// hangs is found out.
//
// # What is whose
//
//   - Of this process alone: Open, Close, Healthy, the values, FailureRest.
//   - Stored with the claim: Lease, MaxHold, Resource, Bind and BindWait, and the BindFor
//     and Cooldown of the call. Two processes may differ; each claim goes by its own.
//   - Stored with the resource: MaxSharers, the expiry, its rest, and what an operator has
//     given it of its own. The last Add or Replace that names a resource decides on its
//     expiry; a holder may set it with ExpireIn.
//   - Stored with the pool, for all: its settings. What is set no process changes.
//   - Of the pool: whose turn it is to ask the Source. One node at a time does; if it
//     dies, another one does after RefreshEvery.
//
// # Leases
//
// An allocation renews by itself at a third of its lease (of the wait lease, if that is
// shorter), until it is released, or the pool or the node is closed. Its local deadline is the
// start of the last request that the server answered, plus the time that the server
// said was left, less a margin of 2 ms and 1 % of the lease. When that passes without
// an answer, or the server says that the resource is not held, the allocation's context
// ends: with berth.ErrLost if the allocation should have been renewed, with
// berth.ErrExpired at its own limit (MaxHold, or the lease under NoRenew), with
// berth.ErrReleased if somebody gave it back. [Allocation.Err] and every call of an
// allocation look at the clock themselves, and so do Err and Done of the contexts that
// an Allocation or Do gives; a context that is made from one of these ends in the same
// moment, or when a timer fires.
//
// [Allocation.RenewFor] gives an allocation another lease, and takes no time away: after a
// shorter one the end stays where it was until the new lease reaches further.
//
// # Guarantees
//
// While Redis keeps its data and its clock:
//
//   - no resource is held by two claims at once, or by more than its MaxSharers; Shared
//     pools excepted;
//   - claims of one priority are granted in the order of their tickets, and nobody
//     passes the first in line, among claims whose processes are heard of;
//   - a running process learns that its hold is lost before another claim can have the
//     resource;
//   - when a process ends, in whatever way, its resources come free within the lease;
//     detached holds and those without end excepted;
//   - no resource is lost: free, leased and resting together are all;
//   - a late release by a holder whose time was over changes nothing;
//   - an allocation that was cancelled, or whose answer was lost, holds nothing for
//     longer than the wait lease;
//   - fences rise with every grant of a pool, also through Swap;
//   - a resource whose record something else wrote over stops nobody: it is [Damaged].
//
// # Not guaranteed
//
//   - A process that is suspended past its lease learns of it at its first call after
//     it has woken. So does a goroutine that does not look at its context. Hand
//     [Allocation.Fence] to whatever the resource protects, and refuse smaller fences
//     there: compare them per resource.
//   - When Redis loses writes (a flush, a failover, a restart without its data)
//     or its clock jumps forward, two may hold one resource until the older holder's
//     next heartbeat, at most for a lease.
//   - A flush takes the resources too, with their rests and bindings. A Source brings
//     the resources back: a process that waits or allocates has it asked when the pool
//     is empty. Without a Source somebody has to Add them again; waiting claims go on
//     waiting.
//   - After node.Operator.Release two may use the resource until the old holder has heard of it.
//   - Lowering MaxSharers ends no hold.
//   - A pool that is Shared promises turns, nothing else.
//
// # When calls fail
//
// Every script can be repeated, and the same claim gets the same answer. A call that
// the server did not answer or did not run (LOADING, CLUSTERDOWN, READONLY and the
// like) is repeated: an Allocate until its wait ends, other calls within node.Config.Retry.
// Other errors of the server, such as OOM or NOPERM, end a call at once. When the
// caller's context ends, an Allocate returns at once; the node removes the rest of
// the claim in the background, and [node.Node.Close] waits for that.
//
// Add, Remove and Replace go in steps of up to 200 resources. Each step is whole by
// itself. A failure leaves the earlier steps done, and the call may be made again. Of
// several Replaces at once the newest decides, and the others return
// [berth.ErrOvertaken]. So does a Replace that a Remove has overtaken, and a Rest or a Remove
// of what another call has changed since it began.
//
// # Errors
//
// Match errors with errors.Is against the sentinels of package berth:
// [berth.ErrNotAcquired] if the claim did not get a resource, with [berth.ErrBusy] if
// others were in the way; [berth.ErrNotHeld] if the hold has ended, with
// [berth.ErrLost] or [berth.ErrExpired]; [berth.ErrAbsent] if the resource is not in
// the pool; [berth.ErrOvertaken] if another operator's call has overtaken this one;
// [berth.ErrInvalidConfig] if a value was refused. A *berth.AcquireError has the reason
// and the counts, a *berth.ConfigError the field.
//
// docs/semantics.md has the guarantees and what happens in every failure.
package allocator
