package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// digestBody is what a digest covers, in the order of the names in JSON, which is
// the canonical one.
type digestBody struct {
	Action     string       `json:"action"`
	Key        Key          `json:"key"`
	Parameters parametersIn `json:"parameters"`
	Service    string       `json:"service"`
	Target     spec.Target  `json:"target"`
	Uses       string       `json:"uses"`
}

// Digest is the SHA-256 (hex) over Canonical.
func Digest(service string, key Key, a spec.Action, p propose.Parameters) (string, error) {
	canonical, err := Canonical(service, key, a, p)
	if err != nil {
		return "", err
	}
	return hexSHA256(canonical), nil
}

// Canonical is the canonical JSON (RFC 8785) of service, key, action, uses,
// target and parameters: the bytes that are gated, approved and sent. Values that
// JSON could not carry unchanged are an error, because two of them could share
// one digest.
func Canonical(service string, key Key, a spec.Action, p propose.Parameters) ([]byte, error) {
	if p == nil {
		p = propose.Parameters{}
	}
	body := digestBody{Service: service, Key: key, Action: a.Name, Uses: a.Uses, Target: a.Target, Parameters: parametersIn(p)}
	texts := []string{service, string(key), a.Name, a.Uses, a.Target.URL, a.Target.StatusURL, a.Target.Secret}
	if err := checkTexts(slices.Concat(texts, a.Target.Argv, a.Target.StatusArgv)...); err != nil {
		return nil, fmt.Errorf("digest of %.60s: %w", a.Name, err)
	}
	if err := checkValues(p); err != nil {
		return nil, fmt.Errorf("digest of %.60s: %w", a.Name, err)
	}
	canonical, err := canonicalJSON(body)
	if err != nil {
		return nil, fmt.Errorf("digest of %.60s: %w", a.Name, err)
	}
	return canonical, nil
}

func hexSHA256(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
