package once

import "github.com/berth-go/berth/internal/wire"

// In JSON a time.Duration is a number of whole milliseconds, berth.Forever null. A moment is a text of RFC 3339, the zero time null. A
// text that is not UTF-8 has its bytes in base64 beside it.

func (p Period) MarshalJSON() ([]byte, error)     { return wire.Marshal(p) }
func (p *Period) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, p) }

func (i Info) MarshalJSON() ([]byte, error)     { return wire.Marshal(i) }
func (i *Info) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, i) }

func (r Result) MarshalJSON() ([]byte, error)     { return wire.Marshal(r) }
func (r *Result) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, r) }

func (l Last) MarshalJSON() ([]byte, error)     { return wire.Marshal(l) }
func (l *Last) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, l) }
