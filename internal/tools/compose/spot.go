package compose

// block is a part of code that runs at most once whenever the code does: the code itself, or a
// branch of an if in such a block.
type block struct {
	parent int // -1 for the code itself
	depth  int // how many blocks it stands in
	at     int // where the statement of the parent begins that it is a part of, in the parent
}

// stand is where a name stands in its code.
type stand struct {
	block int // the innermost block
	at    int // where the statement begins there that names it, or one before that
}

// spot is a place for a definition: in a function or a script's own code, in one of its blocks,
// before a statement. The nil spot is outside of all.
type spot struct {
	in *member
	stand
}

// outer returns the spot before the statement that a is a part of, in the next block outside.
func (a *spot) outer() *spot {
	if b := a.in.blocks[a.block]; b.parent >= 0 {
		return &spot{a.in, stand{b.parent, b.at}}
	}
	return a.in.host
}

// stands notes where each name of the piece stands. Its code has these tokens, which begin there in its
// body; what runs begins with one of them.
func (p *piece) stands(code []token, starts []int, from int) {
	blocks, all := stands(code, from)
	for i := range blocks[1:] {
		blocks[i+1].at = starts[blocks[i+1].at]
	}
	p.blocks = blocks
	for i := range p.names {
		n := &p.names[i]
		n.call, n.value, n.truth = readCall(code, starts, n.at), isValue(code, n.at), isTruth(code, n.at)
		n.stand = all[n.at]
		n.stand.at, n.at = starts[n.stand.at], starts[n.at]
	}
}

// common returns the last spot from which both a and b can be seen.
func common(a, b *spot) *spot {
	for a != nil && b != nil {
		switch {
		case a.in.order < b.in.order: // a function stands before those that have it in them
			a = a.outer()
		case a.in.order > b.in.order:
			b = b.outer()
		case a.block == b.block:
			return &spot{a.in, stand{a.block, min(a.at, b.at)}}
		case a.in.blocks[a.block].depth >= a.in.blocks[b.block].depth:
			a = a.outer()
		default:
			b = b.outer()
		}
	}
	return nil
}

// stands returns the blocks of code, from a token on, and where each of the tokens stands.
func stands(code []token, from int) ([]block, []stand) {
	w := walk{blocks: []block{{parent: -1}}, open: []opening{{stand: stand{0, from}}}}
	all := make([]stand, len(code))
	for i := from; i < len(code); i++ {
		w.read(code[i], i)
		all[i] = w.last().stand
	}
	return w.blocks, all
}

// walk is a way through code.
type walk struct {
	blocks []block
	open   []opening // the innermost last
}

// opening is a part of the code that is open, behind its then, else, do, repeat or function.
type opening struct {
	stand
	function bool
	often    bool // it may run any number of times, so it is no block: all of it belongs to one statement
	loops    int  // for and while whose do is still to come
}

func (w *walk) last() *opening { return &w.open[len(w.open)-1] }

func (w *walk) read(t token, i int) {
	if t.kind != kindName {
		return
	}
	switch t.text {
	case "local", "return", "if":
		w.statement(i)
	case "for", "while":
		w.statement(i)
		w.last().loops++
	case "repeat":
		w.statement(i)
		w.begin(opening{often: true})
	case "do":
		if w.last().loops > 0 {
			w.last().loops--
		} else {
			w.statement(i)
		}
		w.begin(opening{often: true})
	case "function":
		w.begin(opening{often: true, function: true})
	case "then":
		w.branch(i + 1)
	case "else":
		w.end()
		w.branch(i + 1)
	case "elseif", "until":
		w.end()
	case "end":
		if !w.end().function { // whose expression may go on
			w.statement(i + 1)
		}
	}
}

// statement notes that a statement begins at i.
func (w *walk) statement(i int) {
	if last := w.last(); !last.often {
		last.at = i
	}
}

// branch begins a branch of an if.
func (w *walk) branch(i int) {
	last := *w.last()
	if last.often {
		w.begin(opening{often: true})
		return
	}
	w.blocks = append(w.blocks, block{parent: last.block, depth: w.blocks[last.block].depth + 1, at: last.at})
	w.open = append(w.open, opening{stand: stand{len(w.blocks) - 1, i}})
}

func (w *walk) begin(o opening) {
	o.stand = w.last().stand
	w.open = append(w.open, o)
}

func (w *walk) end() opening {
	last := *w.last()
	if len(w.open) > 1 { // else the code cannot be read
		w.open = w.open[:len(w.open)-1]
	}
	return last
}
