package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure/changefile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

func (a *app) explainCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "explain <service|decision>",
		Short: "Say why: what was measured, which rules and floors spoke, what it would need",
		Long: `Say why a service is where it is, or why a decision came out as it did. For a
service everything is measured now, nothing is written and nothing is sent; a
decision is told from the ledger. The first five lines of a service say:

  state    what is broken, by how much and since when
  tried    what was tried in this episode, and its measured outcome
  next     what Setpoint does next and when, or why it does nothing
  you      what a person can do, as the command to type
  balance  what is left of the autonomy budget, with its arithmetic`,
		Example: `  setpoint explain checkout
  setpoint explain d118
  setpoint explain checkout -o json`,
		Args: oneArg("one service or decision"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.explain(cmd.Context(), args[0], output)
		},
	}
	outputFlag(cmd, &output, formatTable, formatJSON, formatYAML)
	return cmd
}

func (a *app) explain(ctx context.Context, name, output string) error {
	s, err := a.site()
	if err != nil {
		return err
	}
	v, err := a.view(ctx, s, false)
	if err != nil {
		if !errors.Is(err, ledger.ErrMissing) {
			a.unreadable(err)
		}
		v, err = a.viewWithoutLedger(s, true)
	}
	if err != nil {
		return err
	}
	name = meant(v.State, name)
	if _, ok := v.Set.Service(name); ok {
		return a.explainService(ctx, v, name, output)
	}
	d, ok := web.DecisionByID(v, name)
	if !ok && v.State.Forgotten > 0 {
		if v.State, err = foldHistory(ctx, s); err != nil {
			return err
		}
		d, ok = web.DecisionByID(v, name)
	}
	if !ok {
		return notExplained(v, name)
	}
	d.Changes = a.changesRuledOn(ctx, s, d)
	if output != formatTable {
		return emit(a.out, output, d)
	}
	p := &paper{w: a.out}
	p.decision(d)
	p.changes("changed lately, as policy saw it", d.Changes, d.Time, d.Service)
	return p.err
}

// meant lets people name what they were shown: a ticket is its decision, a page
// is its service.
func meant(s *ledger.State, name string) string {
	if t := s.Tickets[name]; t != nil && t.Decision != "" {
		return t.Decision
	}
	if p := s.Pages[name]; p != nil && p.Service != "" {
		return p.Service
	}
	return name
}

func notExplained(v web.View, name string) error {
	if _, seen := v.State.Services[name]; seen {
		return fmt.Errorf("no document that can be read names %s, so nothing is measured of it: `setpoint validate` shows faults, `setpoint history --service %s` what was decided", name, name)
	}
	known := slices.Clone(v.State.DecisionOrder)
	for _, svc := range v.Set.Services {
		known = append(known, svc.Name)
	}
	if near := spec.Nearest(name, known); near != "" {
		return fmt.Errorf("no service or decision %q: did you mean %q?", name, near)
	}
	return fmt.Errorf("no service or decision %q: `setpoint get services` and `setpoint get decisions` list them", name)
}

func (a *app) explainService(ctx context.Context, v web.View, name, output string) error {
	results, plans, err := a.planned(ctx, []string{name}, false)
	if err != nil {
		return err
	}
	if len(plans.Items) != 1 {
		return fmt.Errorf("the pass of %s gave %d results", name, len(plans.Items))
	}
	s, err := a.site()
	if err != nil {
		return err
	}
	v.Revised = results[0].Revised
	if feed := a.changeFeed(s, changefile.Options{}); feed != nil {
		v.Changes = feed.Changes(name)
	}
	e := web.Explain(v, plans.Items[0])
	if errors.Is(newAgent(s.cfg.Web.Socket).do(ctx, aliveWait, message{method: http.MethodGet, path: "/-/healthy"}, nil), errNoAgent) {
		a.say("setpoint: no agent answers on %s: this is what one would do, and nothing is done now", s.cfg.Web.Socket)
	}
	if output != formatTable {
		return emit(a.out, output, e)
	}
	p := &paper{w: a.out, now: v.Now}
	p.service(e)
	return p.err
}

// aliveWait is how long explain waits for an agent that may hang.
const aliveWait = time.Second

// orList joins names for a sentence.
func orList(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
