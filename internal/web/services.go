package web

import (
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Service is one line of a ServiceList. What is not known is null.
type Service struct {
	Service          string     `json:"service"`
	Owner            string     `json:"owner"`
	Mode             string     `json:"mode"`
	Ceiling          string     `json:"ceiling"`
	State            string     `json:"state"`
	Reason           string     `json:"reason"`
	SinceSeconds     *float64   `json:"sinceSeconds"`
	Episode          string     `json:"episode,omitempty"`
	LastObserved     *time.Time `json:"lastObserved"`
	LastMet          *time.Time `json:"lastMet"`
	LastError        string     `json:"lastError,omitempty"`
	NextTry          *time.Time `json:"nextTry"`
	BalanceRemaining *float64   `json:"balanceRemaining"`
}

// Services lists the services of the documents.
func Services(v View, f Filter) List[Service] {
	var items []Service
	for _, svc := range v.Set.Services {
		known := v.State.Services[svc.Name]
		if !f.service(svc.Name) || (known != nil && !f.since(known.Since)) {
			continue
		}
		if known == nil && !f.Since.IsZero() {
			continue
		}
		items = append(items, serviceOf(v, svc, known))
	}
	return listOf("ServiceList", items)
}

func serviceOf(v View, svc spec.Service, known *ledger.Service) Service {
	s := Service{
		Service: svc.Name,
		Owner:   svc.Remediation.Owner,
		Mode:    svc.Remediation.Mode.String(),
		Ceiling: serviceCeiling(v, svc).String(),
		State:   string(compare.Unknown),
		Reason:  string(notObserved),
	}
	if known != nil && known.State != "" {
		s.State, s.Reason = string(known.State), string(known.Reason)
		s.SinceSeconds = seconds(known.Since, v.Now)
		s.Episode = known.Episode
		s.LastMet = when(known.LastMet)
	}
	if r, ok := v.Last[svc.Name]; ok {
		s.LastObserved = when(r.Assessment.At)
		if r.RequeueAfter > 0 && !r.Assessment.At.IsZero() {
			s.NextTry = when(r.Assessment.At.Add(r.RequeueAfter))
		}
		if r.Err != nil {
			s.LastError = r.Err.Error()
		}
		if r.Assessment.State == compare.Met {
			s.LastMet = when(r.Assessment.At)
		}
	}
	for _, a := range svc.Remediation.Actions {
		b := balanceOf(v, svc, a.Name)
		if left := min(b.Remaining, b.GlobalRemaining); s.BalanceRemaining == nil || left < *s.BalanceRemaining {
			s.BalanceRemaining = number(left)
		}
	}
	return s
}

// notObserved is the reason of a service that no pass has recorded yet.
const notObserved compare.Reason = "not-observed"

// serviceCeiling is the highest verdict that any action of it can get.
func serviceCeiling(v View, svc spec.Service) gate.Verdict {
	highest := gate.Deny
	for _, a := range svc.Remediation.Actions {
		verdict, _ := gate.Ceiling(svc, a, v.MaxMode, gate.Auto)
		highest = max(highest, verdict)
	}
	return highest
}

// Action is one line of an ActionList: one action with its ceiling and why.
type Action struct {
	Service   string   `json:"service"`
	Action    string   `json:"action"`
	Uses      string   `json:"uses"`
	Class     string   `json:"class"`
	Reversal  string   `json:"reversal"`
	Mark      string   `json:"mark"`
	Ceiling   string   `json:"ceiling"`
	Reasons   []string `json:"reasons"`
	Details   []Detail `json:"details"`
	Remaining float64  `json:"remaining"`
	Capacity  float64  `json:"capacity"`
	Cost      float64  `json:"cost"`
	Suspended string   `json:"suspended,omitempty"`
	// LastSent is when this action was sent last.
	LastSent *time.Time `json:"lastSent"`
	Source   string     `json:"source"`
}

// Actions lists every action of the documents with its ceiling.
func Actions(v View, f Filter) List[Action] {
	var items []Action
	for _, svc := range v.Set.Services {
		if !f.service(svc.Name) {
			continue
		}
		for _, a := range svc.Remediation.Actions {
			sent := lastSent(v.State, svc.Name, a.Name)
			if f.since(sent) {
				items = append(items, actionOf(v, svc, a, sent))
			}
		}
	}
	return listOf("ActionList", items)
}

func actionOf(v View, svc spec.Service, a spec.Action, sent time.Time) Action {
	verdict, reasons := gate.Ceiling(svc, a, v.MaxMode, gate.Auto)
	b := balanceOf(v, svc, a.Name)
	return Action{
		Service: svc.Name, Action: a.Name, Uses: a.Uses,
		Class: string(a.Class), Reversal: string(a.Reversal), Mark: string(a.Mark()),
		Ceiling: verdict.String(), Reasons: codes(reasons), Details: details(reasons),
		Remaining: b.Remaining, Capacity: b.Capacity,
		Cost:      svc.Remediation.Budget.Costs.Dearest(),
		Suspended: v.State.Suspended(svc.Name, a.Name),
		LastSent:  when(sent), Source: a.Pos.String(),
	}
}

func lastSent(s *ledger.State, service, action string) time.Time {
	var newest time.Time
	known := s.Services[service]
	if known == nil {
		return newest
	}
	for _, key := range known.Effects {
		e := s.Effects[key]
		if e != nil && e.Claim.Action.Name == action && e.SentAt().After(newest) {
			newest = e.SentAt()
		}
	}
	return newest
}

// Detail is one reason with its words.
type Detail struct {
	Code  string     `json:"code"`
	Text  string     `json:"text"`
	Until *time.Time `json:"until,omitempty"`
}

func details(rs []gate.Reason) []Detail {
	out := make([]Detail, 0, len(rs))
	for _, r := range rs {
		out = append(out, Detail{Code: r.Code, Text: r.Text, Until: when(r.At)})
	}
	return out
}

// codes are the stable codes in order, each once.
func codes(rs []gate.Reason) []string {
	out := make([]string, 0, len(rs))
	for _, r := range rs {
		if !slices.Contains(out, r.Code) {
			out = append(out, r.Code)
		}
	}
	return out
}
