package execute

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// The headers that actuators receive. None is called Idempotency-Key: with
// that name Go's own HTTP client may send a POST twice (golang.org/issue/19943).
const (
	HeaderKey       = "X-Setpoint-Key"
	HeaderSignature = "X-Setpoint-Signature"
)

// MaxDetail is the longest detail of a receipt, in characters.
const MaxDetail = 300

// Envelope is the JSON body that actuators receive.
type Envelope struct {
	APIVersion string             `json:"apiVersion"`
	Key        gate.Key           `json:"key"`
	Digest     string             `json:"digest"`
	Service    string             `json:"service"`
	Action     string             `json:"action"`
	Parameters propose.Parameters `json:"parameters"`
}

// NewEnvelope is the body for a permit.
func NewEnvelope(p gate.Permit) Envelope {
	e := Envelope{
		APIVersion: spec.Group, Key: p.Key(), Digest: p.Digest(),
		Service: p.Service(), Action: p.Action().Name, Parameters: p.Parameters(),
	}
	if e.Parameters == nil {
		e.Parameters = propose.Parameters{}
	}
	return e
}

// Sign returns the value of X-Setpoint-Signature: t=<unix>,v1=<hex HMAC-SHA256
// of "t.body">. The time is inside, so that a receiver can refuse old bytes.
func Sign(secret []byte, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
