package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func (s *Server) list(build func(View, Filter) any) handler {
	return func(r *http.Request) (any, error) {
		f, err := s.filter(r)
		if err != nil {
			return nil, err
		}
		var out any
		s.o.View(func(v View) { out = build(v, f) })
		return out, nil
	}
}

func (s *Server) decision(r *http.Request) (any, error) {
	id := r.PathValue("id")
	var d DecisionDetail
	ok := false
	s.o.View(func(v View) { d, ok = DecisionByID(v, id) })
	if !ok {
		return nil, notFound("no decision %q; GET /api/v1/decisions lists them", id)
	}
	return d, nil
}

// AnswerRequest is the body of a write to an approval.
type AnswerRequest struct {
	Answer string `json:"answer"`
	Reason string `json:"reason"`
}

func (s *Server) answer(r *http.Request) (any, error) {
	var body AnswerRequest
	if err := decode(r, &body); err != nil {
		return nil, err
	}
	if body.Answer != WordApprove && body.Answer != WordDeny {
		return nil, bad("answer: want approve or deny, not %q", body.Answer)
	}
	if err := cleanReason(&body.Reason); err != nil {
		return nil, err
	}
	by, _ := actorOf(r)
	t, err := s.o.Desk.Answer(r.Context(), approve.Answer{
		Ticket: r.PathValue("id"), By: by, Via: via(by), Approve: body.Answer == WordApprove,
		Reason: body.Reason,
	})
	if err != nil {
		return nil, err
	}
	return ApprovalOf(t), nil
}

// via names the way in: only the command line speaks over the socket.
func via(by string) string {
	if strings.HasPrefix(by, "os:") {
		return "cli"
	}
	return "web"
}

// ApprovalOf is one ticket as an answer of its own.
func ApprovalOf(t approve.Ticket) any {
	return struct {
		Meta
		Approval
	}{Meta{APIVersion: apiVersion, Kind: "Approval"}, approvalOf(t)}
}

// set is the loaded desired state, which is a value that never changes.
func (s *Server) set() spec.Set {
	var set spec.Set
	s.o.View(func(v View) { set = v.Set })
	return set
}

// SettleRequest is the body that ends an in-doubt effect.
type SettleRequest struct {
	As     string `json:"as"`
	Reason string `json:"reason"`
}

func (s *Server) settle(r *http.Request) (any, error) {
	var body SettleRequest
	if err := decode(r, &body); err != nil {
		return nil, err
	}
	as := execute.Effect(body.As)
	if as != execute.Landed && as != execute.NotLanded {
		return nil, bad("as: want landed or not-landed, not %q", body.As)
	}
	if err := needReason(&body.Reason, "say how you know"); err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	by, _ := actorOf(r)
	if err := s.o.Desk.Settle(r.Context(), id, as, by, body.Reason); err != nil {
		return nil, err
	}
	return done("Settled", id), nil
}

func (s *Server) ack(r *http.Request) (any, error) {
	id := r.PathValue("id")
	by, _ := actorOf(r)
	if err := s.o.Desk.Ack(r.Context(), id, by, via(by)); err != nil {
		return nil, err
	}
	return done("Ack", id), nil
}

// ResetRequest is the body of a budget reset; no service and action: the
// global budget.
type ResetRequest struct {
	Service string    `json:"service"`
	Action  string    `json:"action"`
	Reason  string    `json:"reason"`
	Until   time.Time `json:"until,omitzero"`
}

func (s *Server) reset(r *http.Request) (any, error) {
	var body ResetRequest
	if err := decode(r, &body); err != nil {
		return nil, err
	}
	if err := needReason(&body.Reason, "say why the loop may be trusted again"); err != nil {
		return nil, err
	}
	if err := CheckReset(s.set(), body.Service, body.Action); err != nil {
		return nil, err
	}
	by, _ := actorOf(r)
	err := s.o.Desk.ResetBudget(r.Context(), body.Service, ledger.Reset{
		Action: body.Action, By: by, Reason: body.Reason, Until: body.Until,
	})
	if err != nil {
		return nil, err
	}
	return done("Reset", strings.Trim(body.Service+"/"+body.Action, "/")), nil
}

// CheckReset reports whether a budget of that name exists.
func CheckReset(set spec.Set, service, action string) error {
	switch svc, ok := set.Service(service); {
	case service == "" && action == "":
		return nil
	case service == "" || action == "":
		return bad("a reset names a service and an action, or neither for the global budget")
	case !ok:
		return notFound("no service %q in the documents", service)
	default:
		if _, ok := svc.Action(action); !ok {
			return notFound("service %s has no action %q", service, action)
		}
	}
	return nil
}

func (s *Server) reload(r *http.Request) (any, error) {
	if err := s.o.Reload(r.Context()); err != nil {
		return nil, &Error{
			Status: http.StatusUnprocessableEntity, Code: "reload-failed",
			Message: "the last good documents stay: " + err.Error(),
		}
	}
	return done("Reload", ""), nil
}

// hook is what is read of Alertmanager's webhook body.
type hook struct {
	Alerts []struct {
		Labels struct {
			Service string `json:"service"`
		} `json:"labels"`
	} `json:"alerts"`
}

// alertmanager takes hints: the label service and nothing else. An unknown
// name is ignored, so that a hint never creates anything.
func (s *Server) alertmanager(r *http.Request) (any, error) {
	var body hook
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, bodyError(err, &body)
	}
	set := s.set()
	hinted := map[string]bool{}
	for _, a := range body.Alerts {
		name := a.Labels.Service
		if _, ok := set.Service(name); ok && !hinted[name] {
			hinted[name] = true
			s.o.Hint(name)
		}
	}
	return done("Hint", ""), nil
}

// Done says that a write was recorded.
type Done struct {
	Meta
	ID string `json:"id,omitempty"`
}

func done(kind, id string) Done {
	return Done{Meta: Meta{APIVersion: apiVersion, Kind: kind}, ID: id}
}
