// Package fence refuses writes of an older hold. A guard stands beside the resource that a
// lock, or a semaphore of capacity 1, protects.
//
// A process that is stopped past its lease still believes, after waking, that it holds the
// lock, and may write before it checks. No lock can prevent that write. But each grant of a
// name has a greater fence than all grants before it. So pass the fence along with each write,
// and refuse a write with a smaller fence than the greatest one seen. Then the late write is
// refused once the successor has written.
//
//	err := guard.Admit(ctx, "invoice:42", hold.Fence()) // ErrStale: a later hold was here
//
// The same fence is admitted any number of times, since one hold may write often, and a
// re-entry has the fence of its hold. So compare with <=, and never with <.
//
// # Check and write in one step
//
// A check and a later write are two steps. If the process is stopped between them, a newer hold
// may be checked and write first, and the older write comes last after all. Only one step for
// both check and write rules this order out. In order of preference:
//
//   - In a database, keep the fence in the row, and check the fence in the statement that
//     writes; see below.
//   - In Redis, let one script check and write: put [Lua] before your own.
//   - In one process that owns the resource, such as a server whose clients send
//     their fences along: [Memory.Do], or [Memory.Admit] while a mutex of your
//     own is held around check and write.
//   - If the resource can do none of these, such as a printer or another company's API:
//     [Redis.Admit] right before each step. A late write can then still take effect in the time
//     between the check and the write.
//
// In each case store the fence at the start of a hold, before the first read that a write
// depends on. Older holds are refused only from then on; otherwise an older hold may write
// between that read and that write.
//
// # In SQL
//
// The row has a column fence, a 64-bit integer, 0 at first:
//
//	UPDATE accounts SET fence = $1 WHERE id = $2 AND fence <= $1
//	SELECT balance FROM accounts WHERE id = $1
//	UPDATE accounts SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2
//
// Check the number of rows after each update: 0 means that the row had a greater fence, or does
// not exist. A driver may count only the rows that changed (MySQL without clientFoundRows):
// then a repeated update counts 0 rows too. Refuse a fence of 0 before the statement: a context
// outside of a hold has the fence 0. As long as an older hold could insert a row again, mark
// the row as deleted instead of deleting it. The program in examples/fence does all of this.
//
// # Limits of a guard
//
//   - A guard does not know who holds the lock. A holder whose lease is over is admitted until
//     its successor has been admitted.
//   - A guard compares fences of one lock only. Fences of two locks, of a lock and a semaphore,
//     or of two namespaces or servers cannot be compared. With several holders at once, as in a
//     semaphore of a higher capacity, a guard refuses all but the latest.
//   - A guard may lose its fences: [Memory] with its process, and [Redis] with a flush, an
//     eviction, or a failover that loses the last writes. The next fence is then admitted,
//     however old. A fence stored with the data, in the row or in the hash, is lost only
//     together with the data.
package fence
