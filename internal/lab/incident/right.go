package incident

import (
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/config"
)

// compare says what of a score is not as it should be.
func (r Right) compare(s Score, limits config.Limits) []string {
	var out []string
	for _, svc := range s.Services {
		out = append(out, r.compareService(svc)...)
	}
	for _, id := range sorted(keys(s.Fleet), keys(r.Pages)) {
		if s.service(id) == nil {
			out = append(out, lists(id, "people were told", texts(s.Fleet[id]), r.Pages[id])...)
		}
	}
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	wrong(s.DoubleEffects > 0, "%d double effects", s.DoubleEffects)
	wrong(s.ActsOnUnknown > 0, "%d claims while the state was unknown", s.ActsOnUnknown)
	most := limits.EffectsPerServicePerHour
	if r.MaxPerHour > 0 {
		most = min(most, r.MaxPerHour)
	}
	wrong(s.MaxPerHour > most, "%d effects of one service within an hour, want at most %d", s.MaxPerHour, most)
	wrong(s.MaxPerHourAll > limits.EffectsPerHour, "%d effects within an hour, want at most %d", s.MaxPerHourAll, limits.EffectsPerHour)
	return out
}

func (r Right) compareService(s Service) []string {
	var effects []string
	var outcomes []compare.Outcome
	for _, e := range s.Effects {
		effects, outcomes = append(effects, e.Text()), append(outcomes, e.Outcome)
	}
	name := s.Service
	out := lists(name, "the actuators carried out", effects, r.Effects[name])
	out = append(out, lists(name, "measurement said of the effects", outcomes, r.Outcomes[name])...)
	out = append(out, lists(name, "the approvals are", s.Approvals, r.Approvals[name])...)
	out = append(out, lists(name, "people were told", texts(s.Pages), r.Pages[name])...)
	if want, named := r.State[name]; named && s.State != want {
		out = append(out, fmt.Sprintf("%s: is %s at the end, want %s", name, s.State, want))
	}
	if want, named := r.Sent[name]; named && s.Sent != want || !named && s.Sent != len(s.Effects) {
		out = append(out, fmt.Sprintf("%s: %d requests were sent, want %d", name, s.Sent, max(want, len(r.Effects[name]))))
	}
	out = append(out, r.compareWords(s)...)
	return append(out, r.compareVerdict(s)...)
}

// compareWords holds it to what was never wanted, and to what was said.
func (r Right) compareWords(s Service) []string {
	var out []string
	for _, a := range r.Never {
		if slices.Contains(s.wanted, a) {
			out = append(out, fmt.Sprintf("%s: %s was asked for or claimed, want that it never is", s.Service, a))
		}
	}
	for _, code := range r.Said[s.Service] {
		if !slices.Contains(s.Said, code) {
			out = append(out, fmt.Sprintf("%s: no pass ever said %s; they said [%s]", s.Service, code, strings.Join(s.Said, ", ")))
		}
	}
	return out
}

func (r Right) compareVerdict(s Service) []string {
	want, named := r.Last[s.Service]
	if !named {
		return nil
	}
	var out []string
	if s.Verdict != want.Verdict {
		out = append(out, fmt.Sprintf("%s: the last decision is %q, want %s", s.Service, s.Verdict, want.Verdict))
	}
	for _, code := range want.Reasons {
		if !slices.Contains(s.Reasons, code) {
			out = append(out, fmt.Sprintf("%s: the last decision says [%s], want %s in it", s.Service, strings.Join(s.Reasons, ", "), code))
		}
	}
	return out
}

func texts(ps []Paged) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Text())
	}
	return out
}

func lists[T ~string](name, what string, got, want []T) []string {
	if slices.Equal(got, want) {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s [%s], want [%s]", name, what, joined(got), joined(want))}
}

func joined[T ~string](ws []T) string {
	out := make([]string, len(ws))
	for i, w := range ws {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}
