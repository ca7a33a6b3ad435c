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
// A silence concerns the service when its matchers match our own page's
// alertname and service, or when one of them names the service: whatever the
// alert that it was made for.
func (r *Receiver) Silences(ctx context.Context, service string) ([]gate.Hold, error) {
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
	var holds []gate.Hold
	for _, s := range resp.Payload {
		if s != nil && active(s) && concerns(s.Matchers, service) {
			holds = append(holds, gate.Hold{
				ID: text(s.ID), By: execute.CleanText(text(s.CreatedBy), 80),
				Text: execute.CleanText(text(s.Comment), 200), Until: instant(s.EndsAt),
			})
		}
	}
	slices.SortFunc(holds, func(a, b gate.Hold) int { return strings.Compare(a.ID, b.ID) })
	return holds, nil
}

// active asks the silence itself too: an older Alertmanager ignores query
// parameters that it does not know.
func active(s *models.GettableSilence) bool {
	return s.Status != nil && s.Status.State != nil && *s.Status.State == models.SilenceStatusStateActive
}

func concerns(ms models.Matchers, service string) bool {
	all, named := len(ms) > 0, false
	labels := map[string]string{"alertname": escalate.AlertName, "service": service}
	for _, m := range ms {
		if m == nil || m.Name == nil || m.Value == nil {
			return true // what cannot be read is not overruled
		}
		equal := m.IsEqual == nil || *m.IsEqual
		all = all && matches(m, labels[*m.Name]) == equal
		named = named || equal && names(m, service)
	}
	return all || named
}

// names reports whether a matcher names the service. A pattern that also
// matches a name which no service has is about everything, not about this one.
func names(m *models.Matcher, service string) bool {
	return *m.Name == "service" && matches(m, service) && !matches(m, "\x00")
}

// matches compares as Alertmanager does: a pattern is anchored at both ends.
func matches(m *models.Matcher, value string) bool {
	if m.IsRegex == nil || !*m.IsRegex {
		return *m.Value == value
	}
	re, err := regexp.Compile("^(?s:" + *m.Value + ")$")
	return err != nil || re.MatchString(value)
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
