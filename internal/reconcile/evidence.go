package reconcile

import (
	"context"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Asker answers evidence: one expression of one source ("" is the default) at
// one instant.
type Asker interface {
	Ask(ctx context.Context, source, expr string, at time.Time) measure.Reading
}

const (
	// evidenceDeadline bounds all evidence of one question together.
	evidenceDeadline = 5 * time.Second
	// evidenceAtOnce is how many queries of one question are under way.
	evidenceAtOnce = 4
)

// piece is the answer to one evidence query, by its place in the document.
type piece struct {
	at        int
	breakdown measure.Breakdown
	detail    string
}

// breakdowns asks the document's evidence, at the instant of the pass. What does
// not answer in time is unknown, and nothing waits for it: evidence decides
// nothing.
func (p *pass) breakdowns(ctx context.Context) []measure.Breakdown {
	all := p.svc.Remediation.Evidence
	if p.r.o.Asker == nil || len(all) == 0 {
		return nil
	}
	out := make([]measure.Breakdown, len(all))
	for i, e := range all {
		out[i] = measure.BreakdownOf(e.Name, e.Labels, measure.Reading{Reason: measure.SourceError})
	}
	p.r.unslotted(func() {
		ctx, cancel := context.WithTimeout(ctx, evidenceDeadline)
		defer cancel()
		answers := p.askEvidence(ctx, all)
		for range all {
			select {
			case a := <-answers:
				out[a.at] = a.breakdown
				if a.breakdown.Reason != "" {
					p.r.log.Warn("evidence is not known", "service", p.svc.Name, "evidence", a.breakdown.Name,
						"reason", a.breakdown.Reason, "detail", a.detail)
				}
			case <-ctx.Done():
				p.r.log.Warn("evidence came too late and is not waited for", "service", p.svc.Name, "limit", evidenceDeadline)
				return
			case <-p.r.quit:
				return
			}
		}
	})
	return out
}

// askEvidence asks a few at once. Whoever does not hear the end of its context
// is left behind, and writes into room that is there.
func (p *pass) askEvidence(ctx context.Context, all []spec.Evidence) <-chan piece {
	at := measure.Instant(p.now)
	todo, answers := make(chan int, len(all)), make(chan piece, len(all))
	for i := range all {
		todo <- i
	}
	close(todo)
	for range min(evidenceAtOnce, len(all)) {
		go func() {
			for i := range todo {
				if ctx.Err() != nil {
					return
				}
				r := p.r.o.Asker.Ask(ctx, p.svc.EvidenceSource(all[i]), p.svc.EvidenceExpr(all[i]), at)
				answers <- piece{i, measure.BreakdownOf(all[i].Name, all[i].Labels, r), r.Detail}
			}
		}()
	}
	return answers
}
