package web

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Service is one line of a ServiceList. What is not known is null.
type Service struct {
	Service string `json:"service"`
	Owner   string `json:"owner"`
	// Mode is what the document says; EffectiveMode what limits.maxMode leaves
	// of it, where that is less.
	Mode          string `json:"mode"`
	EffectiveMode string `json:"effectiveMode,omitempty"`
	Ceiling       string `json:"ceiling"`
	// Frozen: a freeze is in force, whatever the ceiling says.
	Frozen       bool       `json:"frozen,omitempty"`
	State        string     `json:"state"`
	Reason       string     `json:"reason"`
	SinceSeconds *float64   `json:"sinceSeconds"`
	Episode      string     `json:"episode,omitempty"`
	LastObserved *time.Time `json:"lastObserved"`
	LastMet      *time.Time `json:"lastMet"`
	LastError    string     `json:"lastError,omitempty"`
	// LastErrorKind is transient where time may heal it, persistent where only a
	// person does; "" where it is no fault of a source.
	LastErrorKind    string     `json:"lastErrorKind,omitempty"`
	NextTry          *time.Time `json:"nextTry"`
	BalanceRemaining *float64   `json:"balanceRemaining"`
	// Asked is what models cost in the present episode; absent when none was asked.
	Asked *Asked `json:"asked,omitempty"`
}

// Services lists the services of the documents, or those that the ledger names
// where the documents did not load.
func Services(v View, f Filter) List[Service] {
	var items []Service
	for _, svc := range v.declared() {
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

// declared are the services to list, sorted as the documents have them or by
// name.
func (v View) declared() []spec.Service {
	if v.Undeclared == nil {
		return v.Set.Services
	}
	var out []spec.Service
	for _, name := range slices.Sorted(maps.Keys(v.State.Services)) {
		if v.State.Services[name].Documents != "" {
			out = append(out, spec.Service{Name: name})
		}
	}
	return out
}

// undeclared stands for what only a document could tell.
const undeclared = "unknown"

// effectiveMode is the mode that limits.maxMode leaves; "" where it leaves the
// mode of the document.
func effectiveMode(mode, maxMode spec.Mode) string {
	if maxMode < mode {
		return maxMode.String()
	}
	return ""
}

// frozen reports whether a freeze of files or ledger stops a service now.
func (v View) frozen(service string) bool {
	return slices.ContainsFunc(Freezes(v, Filter{Service: service}).Items, func(f Freeze) bool { return f.Active })
}

func serviceOf(v View, svc spec.Service, known *ledger.Service) Service {
	s := Service{
		Service: svc.Name,
		Owner:   svc.Remediation.Owner,
		Mode:    svc.Remediation.Mode.String(), EffectiveMode: effectiveMode(svc.Remediation.Mode, v.MaxMode),
		Ceiling: serviceCeiling(v, svc).String(), Frozen: v.frozen(svc.Name),
		State:  string(compare.Unknown),
		Reason: string(notObserved),
	}
	if v.Undeclared != nil {
		s.Mode, s.Ceiling = undeclared, undeclared
	}
	if known != nil && known.State != "" {
		s.State, s.Reason = string(known.State), string(known.Reason)
		s.SinceSeconds = seconds(known.Since, v.Now)
		s.Episode, s.Asked = known.Episode, askedOf(*known)
		s.LastMet = when(known.LastMet)
	}
	if r, ok := v.Last[svc.Name]; ok {
		s.LastObserved = when(r.Assessment.At)
		if r.RequeueAfter > 0 && !r.Assessment.At.IsZero() {
			s.NextTry = when(r.Assessment.At.Add(r.RequeueAfter))
		}
		if s.LastError, s.LastErrorKind = sourceFault(r.Assessment); r.Err != nil {
			s.LastError, s.LastErrorKind = r.Err.Error(), ""
		}
		if r.Assessment.State == compare.Met {
			s.LastMet = when(r.Assessment.At)
		}
	}
	s.BalanceRemaining = leastBalance(v, svc)
	return s
}

// The kinds of an error of a source.
const (
	transient  = "transient"
	persistent = "persistent"
)

// sourceFault is what keeps a service's objectives from being measured: what
// only a person can heal before what may pass by itself.
func sourceFault(a compare.Assessment) (text, kind string) {
	for _, o := range a.Objectives {
		if o.State != compare.Unknown {
			continue
		}
		if k := faultKind(o.Reason); k != "" && (kind == "" || kind == transient && k == persistent) {
			text, kind = faultText(o), k
		}
	}
	return text, kind
}

// faultKind is "" for a reason that is no fault of a source.
func faultKind(r compare.Reason) string {
	switch {
	case r == measure.QueryError, r == measure.SourceRefused, r == measure.ClockSkew:
		return persistent
	case r.SourceFault():
		return transient
	}
	return ""
}

// faultText names the source, unless the words of several vantage points do, and
// the objective where the fault is its query's.
func faultText(o compare.Objective) string {
	text := string(o.Reason)
	if len(o.Sources) <= 1 && o.UnknownFrom != "" {
		text += " from " + o.UnknownFrom
	}
	if o.Detail != "" {
		text += ": " + o.Detail
	}
	if o.Reason == measure.QueryError {
		return o.ID + ": " + text
	}
	return text
}

// leastBalance is the room of the action that has least; nil without actions.
func leastBalance(v View, svc spec.Service) *float64 {
	var least *float64
	for _, a := range svc.Remediation.Actions {
		b := balanceOf(v, svc, a.Name)
		if left := min(b.Remaining, b.GlobalRemaining); least == nil || left < *least {
			least = number(left)
		}
	}
	return least
}

// notObserved is the reason of a service that no pass has recorded yet.
const notObserved compare.Reason = "not-observed"

// serviceCeiling is the highest verdict that any action of it can get.
func serviceCeiling(v View, svc spec.Service) gate.Verdict {
	highest := gate.Deny
	for _, a := range svc.Remediation.Actions {
		verdict, _ := gate.Ceiling(svc, a, v.MaxMode, v.State.Ceiling(svc.Name, a.Name, v.Now))
		highest = max(highest, verdict)
	}
	return highest
}

// Action is one line of an ActionList: one action with its ceiling and why.
type Action struct {
	Service  string `json:"service"`
	Action   string `json:"action"`
	Uses     string `json:"uses"`
	Class    string `json:"class"`
	Reversal string `json:"reversal"`
	Mark     string `json:"mark"`
	Ceiling  string `json:"ceiling"`
	// Frozen: a freeze of the service is in force, whatever the ceiling says.
	Frozen    bool     `json:"frozen,omitempty"`
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
			sent := v.State.LastSent(svc.Name, a.Name)
			if f.since(sent) {
				items = append(items, actionOf(v, svc, a, sent))
			}
		}
	}
	return listOf("ActionList", items)
}

func actionOf(v View, svc spec.Service, a spec.Action, sent time.Time) Action {
	verdict, reasons := gate.Ceiling(svc, a, v.MaxMode, v.State.Ceiling(svc.Name, a.Name, v.Now))
	b := balanceOf(v, svc, a.Name)
	return Action{
		Service: svc.Name, Action: a.Name, Uses: a.Uses,
		Class: string(a.Class), Reversal: string(a.Reversal), Mark: string(a.Mark()),
		Ceiling: verdict.String(), Frozen: v.frozen(svc.Name), Reasons: codes(reasons), Details: v.named(svc.Name, a.Name, details(reasons)),
		Remaining: b.Remaining, Capacity: b.Capacity,
		Cost:      svc.Remediation.Budget.Costs.Dearest(),
		Suspended: v.State.Suspended(svc.Name, a.Name, v.Now),
		LastSent:  when(sent), Source: a.Pos.String(),
	}
}

// named says who lowered the ledger's ceiling, why, and until when.
func (v View) named(service, action string, ds []Detail) []Detail {
	for i, d := range ds {
		if d.Code != gate.ReasonLedgerCeiling {
			continue
		}
		c, ok := v.State.Lowering(service, action, v.Now)
		if !ok {
			continue
		}
		ds[i].Text = fmt.Sprintf("%s at most, by %s: %s", c.To, c.By, c.Reason)
		if !c.Until.IsZero() {
			ds[i].Until = when(c.Until)
		}
	}
	return ds
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
		out = append(out, Detail{Code: r.Code, Text: plainly(r), Until: when(r.At)})
	}
	return out
}

// plainly words the two floors of mode observe for people: a verdict of "deny
// at most" would read as if something had been asked and refused.
func plainly(r gate.Reason) string {
	if strings.HasSuffix(r.Text, " allows deny at most") {
		switch r.Code {
		case gate.ReasonMaxMode:
			return "limits.maxMode is observe: nothing is sent"
		case gate.ReasonMode:
			return "the Remediation's mode is observe: nothing is sent"
		}
	}
	return r.Text
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
