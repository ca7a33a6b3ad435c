package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/incident"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// incidents plays a suite of incidents, whose proposers are scripts of their
// own.
func (f evalFlags) incidents(ctx context.Context, out, progress io.Writer) error {
	if f.proposer != "" || f.seeds != 1 {
		return fmt.Errorf("--proposer and --seeds are of scenarios: %s holds incidents, which say themselves who proposes what, and have no chance in them", f.suite)
	}
	all, err := incident.Load(f.suite)
	if err != nil {
		return err
	}
	suite := incident.Suite{Incidents: all}
	began, done := time.Now(), 0
	suite.Done = func(s incident.Score) {
		done++
		fmt.Fprintf(progress, "%d of %d: %s, %s\n", done, suite.Runs(), s.Incident, result(s))
	}
	scores, err := suite.Play(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "%d runs in %s\n", len(scores), time.Since(began).Round(100*time.Millisecond))
	if err := f.printIncidents(out, scores); err != nil {
		return err
	}
	return rightAnswers(scores)
}

func (f evalFlags) printIncidents(out io.Writer, scores []incident.Score) error {
	if f.output == "table" {
		tabulate(out, scores)
		return nil
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(map[string]any{"apiVersion": spec.Group, "kind": "IncidentList", "items": scores})
}

// rightAnswers is what the exit code says.
func rightAnswers(scores []incident.Score) error {
	var bad []string
	for _, s := range scores {
		for _, w := range s.Wrong {
			bad = append(bad, fmt.Sprintf("%s, sweep %s: %s", s.Incident, seconds(s.SweepSeconds), w))
		}
	}
	if len(bad) > 0 {
		return errors.New("not right:\n  " + strings.Join(bad, "\n  "))
	}
	return nil
}

func result(s incident.Score) string {
	if len(s.Wrong) > 0 {
		return "wrong"
	}
	return "right"
}

// tabulate writes a line for each service of which there is something to say,
// and one for pages that belong to none.
func tabulate(out io.Writer, scores []incident.Score) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "INCIDENT\tSERVICE\tSTATE\tEFFECTS\tAPPROVALS\tPAGED\tLAST DECISION\tRESULT")
	for _, s := range scores {
		name, said := s.Incident, result(s)
		if s.SweepSeconds != 30 {
			name += " (sweep " + seconds(s.SweepSeconds) + ")"
		}
		for _, id := range slices.Sorted(maps.Keys(s.Fleet)) {
			reasons := s.Fleet[id]
			fmt.Fprintf(w, "%s\t(%s)\t-\t-\t-\t%s\t-\t%s\n", name, id, toldText(reasons), said)
			name, said = "", ""
		}
		for _, svc := range s.Services {
			if !telling(svc) && name == "" {
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, svc.Service, svc.State, effectsText(svc),
				orDash(svc.Approvals), toldText(svc.Pages), verdictText(svc), said)
			name, said = "", ""
		}
	}
	w.Flush()
}

// telling reports whether something was done about a service.
func telling(s incident.Service) bool {
	return len(s.Effects)+len(s.Approvals)+len(s.Pages) > 0 || s.Verdict != ""
}

func effectsText(s incident.Service) string {
	var out []string
	for _, e := range s.Effects {
		out = append(out, fmt.Sprintf("%s (%s)", e.Text(), e.Outcome))
	}
	return orDash(out)
}

func toldText(ps []incident.Paged) string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Text())
	}
	return orDash(out)
}

func verdictText(s incident.Service) string {
	if s.Verdict == "" {
		return "-"
	}
	return s.Verdict + ": " + orDash(s.Reasons)
}
