package allocator

import "github.com/berth-go/berth/internal/wire"

// In JSON a time.Duration is a number of whole milliseconds, and berth.Forever is null. A time.Time is a text of RFC 3339,
// and the zero time is null. A text that is not UTF-8 has its bytes in base64 beside it.

func (r ResourceInfo) MarshalJSON() ([]byte, error)     { return wire.Marshal(r) }
func (r *ResourceInfo) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, r) }

func (s Settings) MarshalJSON() ([]byte, error)     { return wire.Marshal(s) }
func (s *Settings) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, s) }

func (i Inspection) MarshalJSON() ([]byte, error)     { return wire.Marshal(i) }
func (i *Inspection) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, i) }
