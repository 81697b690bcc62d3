package jam

import "strings"

// The names.
const (
	Full     = "gpu/a100"      // a semaphore of 8, with a line
	Paused   = "mail/outbound" // a semaphore
	Endless  = "report/night"  // a lock
	Left     = "deploy/prod"   // a lock whose process handed its hold to nobody
	Newer    = "ledger"        // a lock, of a newer form
	Drained  = "build/*"       // a label, whose drain is forgotten
	Resting  = "accounts"      // a pool
	Proxies  = "proxies"       // a pool of which one waits for one resource
	Report   = "sales report"  // a job
	Failing  = "backup"        // a job whose run has failed
	Feed     = "price feed"    // an election
	Image    = `<img src=x onerror="alert('an image')">`
	Script   = `"><script>alert("a script")</script>`
	Parent   = ".."
	Escaped  = `a/../b?c=d&e=%2F#f;g +`
	RightTo  = "حجز/الطابعة"
	Location = `javascript:alert("an address")`
)

// Cycle are the locks of the cycle, in the order in which they are waited for.
var Cycle = []string{"stock/shoes", "invoice/1042", "card/visa"}

// Long is as long as a name may be.
var Long = "tenant/" + strings.Repeat("0123456789abcdef", 31) + "/last"

// What strangers may write where any text is allowed.
const (
	backwards = "\u202Egnp.nigol\u202C"
	broken    = "one line\r\nanother \x1b[31mline\x00"
	closing   = `</script></style></textarea></title><svg onload=alert("a picture")>`
	hidden    = "in\u200Bvisi\u200Dble \ufeff"
	wrong     = "not \xff\xfe UTF-8"
)
