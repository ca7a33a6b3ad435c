package alertmanager

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/client/silence"
	"github.com/prometheus/alertmanager/api/v2/models"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
)

// Silences returns the active silences that concern a service, sorted by id.
// Whoever silences a service works on it, so nothing is done to it meanwhile.
// A silence concerns the service when its matchers match the labels that any
// page about a breach of it has, or when one of them names the service: whatever
// the alert that it was made for.
func (r *Receiver) Silences(ctx context.Context, service string) ([]gate.Hold, error) {
	return r.holding(ctx, func(ms models.Matchers) bool { return concerns(ms, service) })
}

// SilencesFor returns the active silences that mute a page, sorted by id: those
// whose matchers all match the labels that Send posts it with, as Alertmanager
// itself decides. One that cannot be read mutes nothing here, because people
// would rather be woken.
func (r *Receiver) SilencesFor(ctx context.Context, p escalate.Page) ([]gate.Hold, error) {
	labels := labels(p)
	return r.holding(ctx, func(ms models.Matchers) bool { return mutes(ms, labels) })
}

// holding are the active silences with such matchers.
func (r *Receiver) holding(ctx context.Context, holds func(models.Matchers) bool) ([]gate.Hold, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	yes, no := true, false
	// No filter: Alertmanager's finds silences by what they name, and would
	// miss one that matches our page without naming the service.
	params := silence.NewGetSilencesParamsWithContext(ctx).WithTimeout(r.timeout).
		WithActive(&yes).WithPending(&no).WithExpired(&no)
	resp, err := r.api.Silence.GetSilences(params)
	if err != nil {
		return nil, fmt.Errorf("silences of alertmanager %s: %w", r.name, readable(err))
	}
	var found []gate.Hold
	for _, s := range resp.Payload {
		if s != nil && active(s) && holds(s.Matchers) {
			found = append(found, gate.Hold{
				ID: text(s.ID), By: execute.CleanText(text(s.CreatedBy), 80),
				Text: execute.CleanText(text(s.Comment), 200), Until: instant(s.EndsAt),
			})
		}
	}
	slices.SortFunc(found, func(a, b gate.Hold) int { return strings.Compare(a.ID, b.ID) })
	return found, nil
}

// active asks the silence itself too: an older Alertmanager ignores query
// parameters that it does not know.
func active(s *models.GettableSilence) bool {
	return s.Status != nil && s.Status.State != nil && *s.Status.State == models.SilenceStatusStateActive
}

func concerns(ms models.Matchers, service string) bool {
	all, named := len(ms) > 0, false
	// Something is done about a breach alone, so the page would be critical. Its
	// reason and episode are not known yet.
	labels := models.LabelSet{"alertname": escalate.AlertName, "service": service, "severity": escalate.SeverityCritical}
	for _, m := range ms {
		match, ok := reads(m)
		if !ok {
			return true // what cannot be read is not overruled
		}
		all = all && match(labels[*m.Name])
		named = named || names(*m.Name, match, service)
	}
	return all || named
}

// names reports whether a matcher names the service. One that also matches a
// name which no service has is about everything, not about this one.
func names(label string, match func(string) bool, service string) bool {
	return label == "service" && match(service) && !match("\x00")
}

// mutes reports whether all matchers match. A label that is not there is empty,
// which a matcher may ask for.
func mutes(ms models.Matchers, labels models.LabelSet) bool {
	for _, m := range ms {
		if match, ok := reads(m); !ok || !match(labels[*m.Name]) {
			return false
		}
	}
	return len(ms) > 0
}

// reads gives what a matcher says of the value of its label, as Alertmanager
// does: a pattern is anchored at both ends, and a matcher without isEqual is from
// before there was another kind.
func reads(m *models.Matcher) (match func(string) bool, ok bool) {
	if m == nil || m.Name == nil || m.Value == nil {
		return nil, false
	}
	equal := m.IsEqual == nil || *m.IsEqual
	if m.IsRegex == nil || !*m.IsRegex {
		return func(v string) bool { return (*m.Value == v) == equal }, true
	}
	re, err := regexp.Compile("^(?s:" + *m.Value + ")$")
	if err != nil {
		return nil, false
	}
	return func(v string) bool { return re.MatchString(v) == equal }, true
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func instant(t *strfmt.DateTime) time.Time {
	if t == nil {
		return time.Time{}
	}
	return time.Time(*t).UTC()
}
