package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// evidenceLimit is how long an agent waits for a service's evidence.
const evidenceLimit = 5 * time.Second

// evidence asks each piece of evidence once, as an agent does before it asks a
// model. What is wrong in the documents is an error; the rest is a warning,
// because evidence decides nothing.
func (i *inspection) evidence(ctx context.Context) {
	var wg sync.WaitGroup
	turns := make(chan struct{}, 4) // Whose time runs, is asked.
	for _, svc := range i.set.Services {
		for _, e := range svc.Remediation.Evidence {
			name := sourceName(i.cfg.Sources, svc.EvidenceSource(e))
			src, ok := i.fleet.Source(name)
			if at := i.sources[name]; !ok || at == nil || !at.Reachable {
				continue
			}
			turns <- struct{}{}
			wg.Go(func() {
				defer func() { <-turns }()
				ctx, cancel := context.WithTimeout(ctx, evidenceLimit)
				defer cancel()
				r := src.AskAside(ctx, svc.EvidenceExpr(e), i.now)
				i.evidenceFound(svc, e, name, measure.BreakdownOf(e.Name, e.Labels, r), r.Detail)
			})
		}
	}
	wg.Wait()
}

// evidenceRemedies say what to do where a breakdown has no rows.
var evidenceRemedies = map[measure.Reason]string{
	measure.SeveralSeries: "aggregate by the labels that are listed, and by no other",
	measure.NotAVector:    "take one number of the histogram, e.g. histogram_count() or histogram_quantile()",
	measure.QueryError:    "correct the query; `setpoint plan --explain-queries` shows those of the objectives for comparison",
	measure.NotFinite:     "give it a denominator that is not zero, or look whether anything of the kind happens",
	measure.Partial:       "look at the warnings of the source",
}

func (i *inspection) evidenceFound(svc spec.Service, e spec.Evidence, source string, b measure.Breakdown, detail string) {
	f := liveFinding{
		File: e.Query.Pos.File, Line: e.Query.Pos.Line, Severity: isWarning, Source: source, Service: svc.Name,
	}
	about := fmt.Sprintf("evidence %q of %s ", e.Name, svc.Name)
	switch {
	case b.Reason != "":
		f.Code, f.Text, f.Do = "evidence-"+string(b.Reason), about+"has no breakdown", evidenceRemedies[b.Reason]
		if detail != "" {
			f.Text += ": " + detail
		}
		if f.Do == "" {
			f.Do = fmt.Sprintf("make it cheaper, or look at the source: an agent waits for %s and goes on without it", evidenceLimit)
		}
		switch b.Reason {
		case measure.SeveralSeries, measure.NotAVector, measure.QueryError:
			f.Severity = isError
		}
	case b.Omitted > 0:
		f.Code, f.Text = "evidence-large", about+fmt.Sprintf("has %d rows, of which the largest %d are shown", len(b.Rows)+b.Omitted, len(b.Rows))
		f.Do = "break down by fewer labels, or take topk() of it"
	case len(b.Rows) == 0:
		f.Code, f.Text, f.Do = "evidence-empty", about+"returns nothing now", "this is right where nothing of the kind happens; otherwise look at its names"
	default:
		return
	}
	i.add(f)
}
