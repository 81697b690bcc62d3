package node

import "github.com/berth-go/berth/internal/wire"

// In JSON a time.Duration is a number of whole milliseconds, and berth.Forever is null. A time.Time is a text of RFC 3339,
// and the zero time is null. A text that is not UTF-8 has its bytes in base64 beside it.

func (s SwarmNode) MarshalJSON() ([]byte, error)     { return wire.Marshal(s) }
func (s *SwarmNode) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, s) }

func (z Zombies) MarshalJSON() ([]byte, error)     { return wire.Marshal(z) }
func (z *Zombies) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, z) }
