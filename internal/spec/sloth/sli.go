package sloth

import (
	"strings"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// indicator reads the one SLI of an SLO.
func (r *reader) indicator(p place, s sli) spec.Indicator {
	at := p.path + ".sli"
	var kinds []string
	for _, k := range []string{"events", "raw", "plugin"} {
		if p.doc.Has(at + "." + k) {
			kinds = append(kinds, k)
		}
	}
	switch {
	case len(kinds) > 1:
		r.fault(p.doc, at, "has %s: give one of them", strings.Join(kinds, " and "))
	case len(kinds) == 0 && !p.quiet:
		r.fault(p.doc, at, "has no SLI: give events, with %s and %s, or raw", r.keys.errorQuery, r.keys.totalQuery)
	case s.Plugin != nil:
		r.fault(p.doc, at+".plugin", "the SLI plugin %q is a program that only Sloth runs: "+
			"write out the queries that it makes as events, with %s and %s", s.Plugin.ID, r.keys.errorQuery, r.keys.totalQuery)
	case s.Events != nil:
		return r.events(p, at+".events", s.Events.ErrorQuery, s.Events.TotalQuery)
	case s.Raw != nil:
		return spec.Indicator{Raw: r.query(p, at+".raw."+r.keys.errorRatioQuery, s.Raw.ErrorRatioQuery)}
	}
	return spec.Indicator{}
}

func (r *reader) events(p place, at, bad, total string) spec.Indicator {
	out := spec.Indicator{
		Bad:           r.query(p, at+"."+r.keys.errorQuery, bad),
		Total:         r.query(p, at+"."+r.keys.totalQuery, total),
		AbsentBadZero: true,
	}
	if out.Bad.Expr == out.Total.Expr && out.Bad.Expr != "" {
		r.fault(p.doc, at+"."+r.keys.errorQuery, "is the same query as %s, so every event would be bad", r.keys.totalQuery)
	}
	return out
}

func (r *reader) query(p place, path, text string) *spec.Query {
	q := &spec.Query{Expr: strings.TrimSpace(text), Pos: p.doc.Positions().At(path)}
	switch err := q.Check(); {
	case !p.doc.Has(path): // The missing key is a fault already.
	case q.Expr == "" && p.quiet: // So is what is no text.
	case q.Expr == "":
		r.fault(p.doc, path, "is empty: write a query with its range as [{{.window}}]")
	case !q.HasWindow():
		r.fault(p.doc, path, "has no {{.window}}: write the range as [{{.window}}], because each query is asked over several windows")
	case err != nil:
		r.fault(p.doc, path, "%s", err)
	}
	return q
}
