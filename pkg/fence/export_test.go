package fence

// Names is how many names the guard keeps anything of.
func (g *Memory) Names() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.names)
}
