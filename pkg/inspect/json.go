package inspect

import "github.com/berth-go/berth/internal/wire"

// In JSON a time.Duration is a number of whole milliseconds, berth.Forever null. A moment is a text of RFC 3339, the zero time null. A
// text that is not UTF-8 has its bytes in base64 beside it.

func (p Page[E]) MarshalJSON() ([]byte, error)     { return wire.Marshal(p) }
func (p *Page[E]) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, p) }

func (c Claim) MarshalJSON() ([]byte, error)     { return wire.Marshal(c) }
func (c *Claim) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, c) }

func (e Explanation) MarshalJSON() ([]byte, error)     { return wire.Marshal(e) }
func (e *Explanation) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, e) }

func (m Mend) MarshalJSON() ([]byte, error)     { return wire.Marshal(m) }
func (m *Mend) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, m) }

func (r Reason) MarshalJSON() ([]byte, error)     { return wire.Marshal(r) }
func (r *Reason) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, r) }

func (e Event) MarshalJSON() ([]byte, error)     { return wire.Marshal(e) }
func (e *Event) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, e) }

func (h Heard) MarshalJSON() ([]byte, error)     { return wire.Marshal(h) }
func (h *Heard) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, h) }

func (n Node) MarshalJSON() ([]byte, error)     { return wire.Marshal(n) }
func (n *Node) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, n) }

func (c Claimed) MarshalJSON() ([]byte, error)     { return wire.Marshal(c) }
func (c *Claimed) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, c) }

func (e Election) MarshalJSON() ([]byte, error)     { return wire.Marshal(e) }
func (e *Election) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, e) }

func (c Cycles) MarshalJSON() ([]byte, error)     { return wire.Marshal(c) }
func (c *Cycles) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, c) }

func (c Cycle) MarshalJSON() ([]byte, error)     { return wire.Marshal(c) }
func (c *Cycle) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, c) }

func (l Link) MarshalJSON() ([]byte, error)     { return wire.Marshal(l) }
func (l *Link) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, l) }

func (e End) MarshalJSON() ([]byte, error)     { return wire.Marshal(e) }
func (e *End) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, e) }

func (l Look) MarshalJSON() ([]byte, error)     { return wire.Marshal(l) }
func (l *Look) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, l) }

func (a AskedClaim) MarshalJSON() ([]byte, error)     { return wire.Marshal(a) }
func (a *AskedClaim) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, a) }

func (h Hold) MarshalJSON() ([]byte, error)     { return wire.Marshal(h) }
func (h *Hold) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, h) }

func (w Wait) MarshalJSON() ([]byte, error)     { return wire.Marshal(w) }
func (w *Wait) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, w) }

func (r Resource) MarshalJSON() ([]byte, error)     { return wire.Marshal(r) }
func (r *Resource) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, r) }
