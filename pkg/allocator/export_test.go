package allocator

// InspectAtOnce lowers up to how many resources Inspect reads in one step.
func (p *Pool[T]) InspectAtOnce(resources int) { p.core.atOnce = resources }
