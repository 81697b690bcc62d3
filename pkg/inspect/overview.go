package inspect

import "context"

// Overview reads again and again the names that somebody waits for, as a page does that stays open: of more than it may
// read at once it reads those with the most waiting claims each time, and the others in turn. It is not safe for
// concurrent use. There is nothing to close.
type Overview struct {
	reader *Reader
	filter NameFilter
}

// Overview returns what reads the names that a filter means; Idle and Waiting do not count.
func (r *Reader) Overview(f NameFilter) (*Overview, error) {
	if err := checkKinds(f.Kinds); err != nil {
		return nil, err
	}
	f.Waiting, f.Idle = true, false
	return &Overview{r, f}, nil
}

// Read makes one pass: it reads up to 50 names of each of the 16 parts of the registry, and of these up to 200. The
// names with the most waiting claims are the first. One that this pass has not read again is as an earlier one has found
// it: see its At.
func (o *Overview) Read(ctx context.Context) (Page[Name], error) {
	return o.reader.Names(ctx, o.filter, "", 200)
}
