package reader

// Between has a function run before each trip of a name but the first.
func (r *Reader) Between(f func()) { r.between = f }
