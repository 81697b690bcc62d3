package semaphore

// Ticket is when the permit's claim came.
func (p *Permit) Ticket() int64 { return p.hold.Ticket() }
