package semaphore

// Ticket is when the permit's claim came.
func (p *Permit) Ticket() int64 { return p.hold.Ticket() }

// Operator is that of the client.
func (s *Semaphore) Operator() *Operator { return s.client.Operator() }
