package berth

import (
	"encoding/base64"
	"encoding/json"
)

// Token identifies a detached hold, so that another goroutine or process can resume it. A token
// is not a credential: anybody who has the token and can reach the server can resume the hold.
type Token struct {
	// Kind is the kind of the name: keyspace.Sem, keyspace.Lock or keyspace.Pool.
	Kind Kind `json:"kind"`
	// Namespace is the namespace of the node that made the token.
	Namespace string `json:"namespace"`
	// Name is the name that is held.
	Name string `json:"name"`
	// Claim is the id of the hold.
	Claim string `json:"claim"`
	// Node is the id of the node that detached the hold.
	Node string `json:"node"`
	// Fence is the fencing token of the grant.
	Fence int64 `json:"fence,string"`
}

// tokenJSON has the fields of a Token without its methods.
type tokenJSON Token

// MarshalText encodes the token as URL-safe text.
func (t Token) MarshalText() ([]byte, error) {
	raw, err := json.Marshal(tokenJSON(t))
	if err != nil {
		return nil, err
	}
	return []byte(base64.RawURLEncoding.EncodeToString(raw)), nil
}

// UnmarshalText decodes the text of MarshalText. UnmarshalText returns a *ConfigError for any
// other text.
func (t *Token) UnmarshalText(text []byte) error {
	raw, err := base64.RawURLEncoding.DecodeString(string(text))
	if err != nil {
		return Invalid("token", "it is not the text of a token")
	}
	var decoded tokenJSON
	if err := json.Unmarshal(raw, &decoded); err != nil {
		return Invalid("token", "it is not the text of a token")
	}
	*t = Token(decoded)
	return nil
}

// String returns the token as MarshalText encodes it.
func (t Token) String() string {
	text, err := t.MarshalText()
	if err != nil { // names are checked to be valid text, so never
		return ""
	}
	return string(text)
}
