package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/budget"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

const scorecardLong = `Say what each action has earned, from the ledger alone. Nothing is measured,
written or sent, and no mode is changed: a rung is granted by a person who commits
the edit that is shown.

  would act    windows in which the recorded decision, but for mode and
               limits.maxMode, would have been auto or approval; windows in which
               the action's own cooldown or judgement would have held it are not
               counted
  by itself    breaches that ended without any effect of Setpoint's, and in how
               many of them this action would have acted
  cost         at most: what ran, by its measured outcome; what did not run, the
               cost of no-change, unless the service was well again by itself
               within settle and judge window. The second part is an estimate of
               what did not happen, as if no action had helped
  people       tickets of this action that were approved, denied, not answered

The rungs, each with all of the ones below it:

  suggest      the SLO was measured and met in the period, and is not in doubt
  approval     it would have acted %d times and the cost fits the capacity; or %d
               effects were judged and none worsened anything
  auto         %d judged effects in %d episodes (a service that was recovering by
               itself does not count), none worsened, none unknown, %.0f %% helped,
               at most %.0f %% of the tickets denied, %.0f days watched

Suspension and a lowered ceiling take rungs away at once. --ledger reads an export
(setpoint ledger export, gzip too), whose newest entry is then the end of the
period; without a configuration beside it, the actions are those that it names.`

// scorecardFlags are the flags of `scorecard`.
type scorecardFlags struct{ since, service, ledger, output string }

func (a *app) scorecardCommand() *cobra.Command {
	var f scorecardFlags
	cmd := &cobra.Command{
		Use:   "scorecard",
		Short: "Say what each action would have done, what that would have cost, and which mode it has earned",
		Long: fmt.Sprintf(scorecardLong, budget.TrialsForApproval, budget.TrialsForApproval, budget.EffectsForAuto, budget.EpisodesForAuto,
			budget.HelpedForAuto*100, budget.DeniedForAuto*100, budget.WatchedForAuto.Hours()/24),
		Example: `  setpoint scorecard
  setpoint scorecard --since 28d --service checkout
  setpoint scorecard --ledger month.jsonl.gz -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.scorecard(cmd, f) },
	}
	cmd.Flags().StringVar(&f.since, "since", "14d", "the period: a duration back such as 14d, or a time")
	cmd.Flags().StringVar(&f.service, "service", "", "only this service")
	cmd.Flags().StringVar(&f.ledger, "ledger", "", "read this export instead of the configured ledger; - is standard input")
	outputFlag(cmd, &f.output, formatTable, formatWide, formatJSON, formatYAML)
	return cmd
}

// scorecardList is the answer as JSON.
type scorecardList struct {
	web.Meta
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	Items []score   `json:"items"`
}

func (a *app) scorecard(cmd *cobra.Command, f scorecardFlags) (err error) {
	ctx := cmd.Context()
	past, err := a.recorded(ctx, f.ledger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, past.close()) }()
	from, err := web.ParseSince(f.since, past.newest)
	if err != nil {
		return usageError(cmd, "--since: %v", err)
	}
	if !from.Before(past.newest) {
		return usageError(cmd, "--since: %s is no time before %s", f.since, clock(past.newest))
	}
	c, err := chronicleOf(ctx, past)
	if err != nil {
		return fmt.Errorf("scorecard of %s: %w", past.name, err)
	}
	s := &scorer{c: c, blob: past.Blob, from: from.UTC(), to: past.newest.UTC(), maxMode: spec.Auto}
	if err := a.scoredDocuments(s, f.ledger != ""); err != nil {
		return err
	}
	if _, ok := s.set.Service(f.service); f.service != "" && !ok {
		return unknownService(s.set, f.service)
	}
	items, err := s.scores(ctx, f.service)
	if err != nil {
		return err
	}
	return a.showScorecard(scorecardList{web.Meta{APIVersion: spec.Group, Kind: "ScorecardList"}, s.from, s.to, items}, f.output)
}

// scoredDocuments are the configured ones; for an export without a configuration,
// what the chain itself tells of its actions.
func (a *app) scoredDocuments(s *scorer, export bool) error {
	at, err := a.site()
	if err != nil {
		if export && errors.Is(err, errNoConfig) {
			s.set = recordedSet(s.c)
			a.say("setpoint: there is no %s, so the actions are those that the export names; budgets and caps are the defaults where it does not tell", a.configFile())
			return nil
		}
		return err
	}
	s.maxMode, s.config = at.cfg.Limits.MaxMode, at.file
	s.set, err = at.documents()
	return err
}

// recordedSet is what a chain tells of the documents: services and actions by
// their decisions, the rest of an action by its newest claim.
func recordedSet(c *chronicle) spec.Set {
	of := map[string]*spec.Remediation{}
	remediation := func(service string) *spec.Remediation {
		if of[service] == nil {
			r := spec.DefaultRemediation(service)
			of[service] = &r
		}
		return of[service]
	}
	for _, id := range c.state.DecisionOrder {
		d := c.state.Decisions[id]
		r := remediation(d.Service)
		r.Mode = d.Mode
		if d.Proposal.Kind == propose.KindAction {
			setAction(r, spec.Action{Name: d.Proposal.Action}, false)
		}
	}
	for _, key := range c.state.EffectOrder {
		e := c.state.Effects[key]
		r := remediation(e.Service)
		setAction(r, e.Claim.Action, true)
		r.Budget.Costs = e.Claim.Costs
	}
	var set spec.Set
	for _, name := range slices.Sorted(maps.Keys(of)) {
		slices.SortFunc(of[name].Actions, func(a, b spec.Action) int { return strings.Compare(a.Name, b.Name) })
		set.Services = append(set.Services, spec.Service{Name: name, Remediation: *of[name]})
	}
	return set
}

func setAction(r *spec.Remediation, a spec.Action, replace bool) {
	i := slices.IndexFunc(r.Actions, func(have spec.Action) bool { return have.Name == a.Name })
	switch {
	case i < 0:
		r.Actions = append(r.Actions, a)
	case replace:
		r.Actions[i] = a
	}
}

func (a *app) showScorecard(list scorecardList, output string) error {
	if output == formatJSON || output == formatYAML {
		return emit(a.out, output, list)
	}
	if len(list.Items) == 0 {
		a.say("no actions: nothing to score")
		return nil
	}
	if err := a.print("from %s to %s (%s)\n\n", clock(list.Since), clock(list.Until), daysText(list.Until.Sub(list.Since))); err != nil {
		return err
	}
	t := scoreTable(list.Items, output == formatWide)
	if err := t.write(a.out, a.colour); err != nil {
		return err
	}
	p := &paper{w: a.out}
	p.head("cost is what was measured where it ran; otherwise an estimate, at most, as if no action had helped")
	for _, s := range list.Items {
		p.score(s)
	}
	return p.err
}

func scoreTable(items []score, wide bool) *table {
	t := &table{header: []string{"SERVICE", "ACTION", "MODE", "EARNED", "WATCHED", "WOULD ACT", "BY ITSELF", "COST", "RAN", "PEOPLE"}}
	if wide {
		t.header = append(t.header, "CHARGED", "CAPACITY", "HELD", "GAPS", "OUTCOMES")
	}
	for _, s := range items {
		row := []string{
			s.Service, s.Action, modeText(s.Mode, s.EffectiveMode), s.Earned, watchedText(s),
			fmt.Sprint(s.WouldHaveActed), fmt.Sprintf("%d of %d", s.AfterWouldHaveActed, s.RecoveredByItself),
			fmt.Sprintf("%.4g of %.4g", s.WouldHaveCost, s.Capacity), ranText(s), peopleText(s),
		}
		if wide {
			row = append(row, fmt.Sprintf("%.4g", s.Charged), fmt.Sprintf("%.4g", s.Capacity), fmt.Sprint(s.HeldByCooldown), fmt.Sprint(s.Gaps), outcomesText(s))
		}
		t.add(row...)
	}
	return t
}

func watchedText(s score) string {
	return fmt.Sprintf("%s of %s", daysText(time.Duration(s.WatchedSeconds)*time.Second), daysText(time.Duration(s.PeriodSeconds)*time.Second))
}

// daysText is a length of days, or hours where that is less than one.
func daysText(d time.Duration) string {
	if d < 24*time.Hour {
		return age(d)
	}
	return fmt.Sprintf("%.3g d", float64(int(d.Hours()/24*10))/10)
}

func ranText(s score) string {
	n := 0
	for _, of := range s.Outcomes {
		n += of
	}
	helped := s.Outcomes["recovered"] + s.Outcomes["improved"]
	if n == 0 {
		return "0"
	}
	text := fmt.Sprintf("%d, %d helped", n, helped)
	if worsened := s.Outcomes["worsened"]; worsened > 0 {
		text += fmt.Sprintf(", %d worsened", worsened)
	}
	return text
}

func peopleText(s score) string {
	if s.Approved+s.Denied+s.Expired == 0 {
		return ""
	}
	return fmt.Sprintf("%d yes, %d no, %d silent", s.Approved, s.Denied, s.Expired)
}

func outcomesText(s score) string {
	var parts []string
	for _, o := range slices.Sorted(maps.Keys(s.Outcomes)) {
		parts = append(parts, fmt.Sprintf("%d %s", s.Outcomes[o], o))
	}
	return strings.Join(parts, ", ")
}

// score is one action in sentences.
func (p *paper) score(s score) {
	capped := ""
	if s.CappedAt != "" && s.rung > s.cap {
		capped = fmt.Sprintf(", capped at %s by %s", s.CappedAt, and(s.CappedBy))
	}
	p.head(fmt.Sprintf("%s/%s has earned %s%s; its mode is %s", s.Service, s.Action, s.Earned, capped, modeText(s.Mode, s.EffectiveMode)))
	if s.WatchedSeconds < 0.9*s.PeriodSeconds {
		p.line("  watched %s: what happened in the rest is not known", watchedText(s))
	}
	if s.Gaps > 0 {
		p.line("  %s in the watch, %s at most: a pass that finds nothing new writes nothing", count(s.Gaps, "gap"), daysText(time.Duration(s.GapsSeconds)*time.Second))
	}
	if s.Unread > 0 {
		p.line("  %s recorded without what bound them, so the mode's part in them cannot be told", count(s.Unread, "decision")+plural(s.Unread, " was", " were"))
	}
	if len(s.Why) > 0 {
		p.line("  why: %s", strings.Join(s.Why, "; "))
	}
	if s.Next != "" {
		p.line("  next: %s", s.Next)
	}
	for _, e := range s.Edits {
		place := e.File
		if e.Line > 0 {
			place = fmt.Sprintf("%s:%d", e.File, e.Line)
		}
		p.line("  edit %s: %s: %s → %s (%s)", place, e.Key, e.From, e.To, e.Why)
	}
}
