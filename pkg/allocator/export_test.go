package allocator

// InspectAtOnce lowers up to how many resources Inspect reads in one step.
func (o *Operator) InspectAtOnce(resources int) { o.atOnce = resources }
