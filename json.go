package berth

import "github.com/berth-go/berth/internal/wire"

// In JSON a time.Duration is a number of whole milliseconds, and Forever is null. A time.Time is a text of RFC 3339, and
// the zero time is null. A text that is not UTF-8 has its bytes in base64 beside it.

func (h Holder) MarshalJSON() ([]byte, error)     { return wire.Marshal(h) }
func (h *Holder) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, h) }

func (w Waiter) MarshalJSON() ([]byte, error)     { return wire.Marshal(w) }
func (w *Waiter) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, w) }

func (n Name) MarshalJSON() ([]byte, error)     { return wire.Marshal(n) }
func (n *Name) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, n) }

func (t Trouble) MarshalJSON() ([]byte, error)     { return wire.Marshal(t) }
func (t *Trouble) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, t) }

func (l LockInfo) MarshalJSON() ([]byte, error)     { return wire.Marshal(l) }
func (l *LockInfo) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, l) }

func (r RunsInfo) MarshalJSON() ([]byte, error)     { return wire.Marshal(r) }
func (r *RunsInfo) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, r) }

func (r Ref) MarshalJSON() ([]byte, error)     { return wire.Marshal(r) }
func (r *Ref) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, r) }

func (b Binding) MarshalJSON() ([]byte, error)     { return wire.Marshal(b) }
func (b *Binding) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, b) }

func (p Pause) MarshalJSON() ([]byte, error)     { return wire.Marshal(p) }
func (p *Pause) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, p) }

func (r Report) MarshalJSON() ([]byte, error)     { return wire.Marshal(r) }
func (r *Report) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, r) }

func (t Target) MarshalJSON() ([]byte, error)     { return wire.Marshal(t) }
func (t *Target) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, t) }

func (d DrainTarget) MarshalJSON() ([]byte, error)     { return wire.Marshal(d) }
func (d *DrainTarget) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, d) }

func (d Drain) MarshalJSON() ([]byte, error)     { return wire.Marshal(d) }
func (d *Drain) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, d) }

func (d Drained) MarshalJSON() ([]byte, error)     { return wire.Marshal(d) }
func (d *Drained) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, d) }

func (u Unfinished) MarshalJSON() ([]byte, error)     { return wire.Marshal(u) }
func (u *Unfinished) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, u) }
