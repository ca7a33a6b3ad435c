package web

import (
	"net/http"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// CeilingRequest is the body that sets the ledger's ceiling of an action, or of
// a whole service.
type CeilingRequest struct {
	Service string    `json:"service"`
	Action  string    `json:"action"`
	To      string    `json:"to"`
	Raise   bool      `json:"raise"`
	Reason  string    `json:"reason"`
	Until   time.Time `json:"until,omitzero"`
}

// Ceiling is the entry of a checked request, by an authenticated principal.
func (c CeilingRequest) Ceiling(by string) ledger.Ceiling {
	to := gate.Deny
	_ = to.UnmarshalText([]byte(c.To)) // It was checked.
	return ledger.Ceiling{Action: c.Action, To: to, By: by, Reason: c.Reason, Until: c.Until}
}

// CheckCeiling reports whether a request names an action and a verdict.
func CheckCeiling(set spec.Set, c CeilingRequest) error {
	svc, ok := set.Service(c.Service)
	if !ok {
		return notFound("no service %q in the documents", c.Service)
	}
	if _, ok := svc.Action(c.Action); c.Action != "" && !ok {
		return notFound("service %s has no action %q", c.Service, c.Action)
	}
	var to gate.Verdict
	if err := to.UnmarshalText([]byte(c.To)); err != nil || to.String() != c.To {
		return bad("to: want deny, escalate, approval or auto, not %q", c.To)
	}
	return nil
}

func (s *Server) ceiling(r *http.Request) (any, error) {
	var body CeilingRequest
	if err := decode(r, &body); err != nil {
		return nil, err
	}
	if err := needReason(&body.Reason, "say why"); err != nil {
		return nil, err
	}
	if err := CheckCeiling(s.set(), body); err != nil {
		return nil, err
	}
	by, _ := actorOf(r)
	if err := s.o.Desk.Ceiling(r.Context(), body.Service, body.Ceiling(by), body.Raise); err != nil {
		return nil, err
	}
	return done("Ceiling", body.Service), nil
}

// LowerRequest is the body that lowers marks which lie in the future; no
// service: all.
type LowerRequest struct {
	Service string `json:"service"`
	Reason  string `json:"reason"`
}

// Windows are the windows that hold now, of one service or of all.
func Windows(set spec.Set, service string, now time.Time) map[string]gate.WindowID {
	out := map[string]gate.WindowID{}
	for _, svc := range set.Services {
		if service == "" || service == svc.Name {
			out[svc.Name] = gate.WindowAt(now, svc.Remediation.ActionWindow)
		}
	}
	return out
}

func (s *Server) lowerMark(r *http.Request) (any, error) {
	var body LowerRequest
	if err := decode(r, &body); err != nil {
		return nil, err
	}
	if err := needReason(&body.Reason, "say what the clock did"); err != nil {
		return nil, err
	}
	set := s.set()
	if _, ok := set.Service(body.Service); body.Service != "" && !ok {
		return nil, notFound("no service %q in the documents", body.Service)
	}
	by, _ := actorOf(r)
	if err := s.o.Desk.LowerMark(r.Context(), Windows(set, body.Service, s.o.Now()), by, body.Reason); err != nil {
		return nil, err
	}
	return done("Lowered", body.Service), nil
}
