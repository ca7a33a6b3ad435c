package main

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// kind is one thing that get lists.
type kind struct {
	name string
	// live: a running agent knows more than the ledger does, namely what it
	// measured last.
	live bool
	// documents: the list is of what the documents declare, and without them
	// there is nothing to show.
	documents bool
	// faults: the list says less without the documents, so that their faults
	// are shown with it.
	faults bool
	show   func(*lister) error
}

// none is what is missing from an empty list.
func (k kind) none() string {
	if k.name == "drift" {
		return "drift: no service has an open episode"
	}
	return k.name
}

func kinds() []kind {
	return []kind{
		{name: "services", live: true, faults: true, show: list(web.Services, servicesTable)},
		{name: "objectives", live: true, documents: true, show: list(web.Objectives, objectivesTable)},
		{name: "actions", documents: true, show: list(web.Actions, actionsTable)},
		{name: "approvals", show: list(web.Approvals, approvalsTable)},
		{name: "budgets", documents: true, show: list(web.Budgets, budgetsTable)},
		{name: "drift", live: true, faults: true, show: showDrift},
		{name: "decisions", show: list(web.Decisions, decisionsTable)},
		{name: "pages", show: list(web.Pages, pagesTable)},
		{name: "changes", show: showChanges},
		{name: "freezes", show: list(web.Freezes, freezesTable)},
	}
}

func kindNames() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

func (a *app) getCommand() *cobra.Command {
	var flags listFlags
	cmd := &cobra.Command{
		Use:   "get " + strings.Join(kindNames(), "|"),
		Short: "List what is known, from the ledger and the documents",
		Long: `List what is known. The ledger is only read, so this works beside a running
agent and without one; the newest measurements come from the agent where it
answers.`,
		Example: `  setpoint get services
  setpoint get approvals -o wide
  setpoint get decisions --service checkout --since 2h -o json
  setpoint get budgets -o yaml
  setpoint get drift -o wide          # what is missed, oldest first, and how long it took before`,
		ValidArgs: kindNames(),
		Args:      oneArg("one of " + strings.Join(kindNames(), ", ")),
		RunE: func(cmd *cobra.Command, args []string) error {
			i := slices.IndexFunc(kinds(), func(k kind) bool { return k.name == args[0] || k.name == args[0]+"s" })
			if i < 0 {
				hint := "want one of " + strings.Join(kindNames(), ", ")
				if near := spec.Nearest(args[0], kindNames()); near != "" {
					hint = "did you mean " + near + "?"
				}
				return usageError(cmd, "nothing is called %q, %s", args[0], hint)
			}
			return a.get(cmd, kinds()[i], flags)
		},
	}
	flags.add(cmd)
	return cmd
}

func (a *app) historyCommand() *cobra.Command {
	var flags listFlags
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List what was decided, oldest first (get decisions)",
		Example: `  setpoint history --since 24h
  setpoint history --service checkout -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			i := slices.IndexFunc(kinds(), func(k kind) bool { return k.name == "decisions" })
			return a.get(cmd, kinds()[i], flags)
		},
	}
	flags.add(cmd)
	return cmd
}

func (a *app) get(cmd *cobra.Command, k kind, flags listFlags) error {
	f, err := flags.filter(cmd, a.now())
	if err != nil {
		return err
	}
	s, err := a.site()
	if err != nil {
		return err
	}
	l := &lister{app: a, site: s, ctx: cmd.Context(), kind: k, filter: f, output: flags.output}
	return k.show(l)
}

// lister is one answer of get.
type lister struct {
	app    *app
	site   site
	ctx    context.Context
	kind   kind
	filter web.Filter
	output string
	// freezes are read once, for the table that says who froze what.
	freezes []web.Freeze
}

// list joins the two ways to a list with its table.
func list[T any](build func(web.View, web.Filter) web.List[T], rows func(*lister, []T) (*table, []string)) func(*lister) error {
	return func(l *lister) error {
		items, err := load(l, build)
		if err != nil {
			return err
		}
		if l.output == formatJSON || l.output == formatYAML {
			return emit(l.app.out, l.output, items)
		}
		return l.show(rows(l, items.Items))
	}
}

// show writes a list as names or as a table.
func (l *lister) show(t *table, names []string) error {
	if l.output == formatName {
		for _, n := range names {
			if err := l.app.print("%s\n", n); err != nil {
				return err
			}
		}
		return nil
	}
	if len(names) == 0 {
		l.app.say("no %s", l.kind.none())
		return nil
	}
	if err := t.write(l.app.out, l.app.colour); err != nil {
		return err
	}
	// Beside the table, so that whoever reads its lines reads no hint.
	for _, h := range t.hints {
		l.app.say("%s", strings.Map(printable, h))
	}
	return nil
}

func load[T any](l *lister, build func(web.View, web.Filter) web.List[T]) (web.List[T], error) {
	var silent error
	if l.kind.live {
		var items web.List[T]
		silent = l.ask(&items)
		// An empty answer about one service may be a typing error, which the
		// documents tell.
		if silent == nil && (len(items.Items) > 0 || l.filter.Service == "") {
			return items, nil
		}
	}
	v, err := l.app.view(l.ctx, l.site, l.kind.documents)
	if err != nil {
		return web.List[T]{}, err
	}
	if v.State, err = l.past(v.State); err != nil {
		return web.List[T]{}, err
	}
	l.caution(v, silent)
	if l.filter.Service != "" && len(v.Set.Services) > 0 {
		if _, ok := v.Set.Service(l.filter.Service); !ok {
			return web.List[T]{}, unknownService(v.Set, l.filter.Service)
		}
	}
	return build(v, l.filter), nil
}

// past is the state with what the filter asks for: the newest of everything is
// at hand, what is older is folded again.
func (l *lister) past(s *ledger.State) (*ledger.State, error) {
	if l.kind.name != "decisions" || s.Forgotten == 0 || len(s.DecisionOrder) == 0 {
		return s, nil
	}
	oldest := s.Decisions[s.DecisionOrder[len(s.DecisionOrder)/2]].Time
	if l.filter.Since.IsZero() {
		l.app.say("setpoint: %d older decisions are left out; --since 30d shows them", s.Forgotten)
		return s, nil
	}
	if l.filter.Since.After(oldest) {
		return s, nil
	}
	l.app.say("setpoint: reading the whole ledger")
	return foldHistory(l.ctx, l.site)
}

// caution says what a list from the ledger lacks: the newest readings of an
// agent that does not answer, and what the documents would tell.
func (l *lister) caution(v web.View, silent error) {
	if v.Undeclared != nil && l.kind.faults {
		l.app.say("%s", strings.TrimSuffix(v.Undeclared.Error(), "\n"))
	}
	if silent != nil {
		l.app.say("setpoint: %v; this is what the ledger knew at %s", silent, clock(v.State.Time))
	}
}

// frozenBy are those whose freezes stop a service now.
func (l *lister) frozenBy(service string) ([]string, error) {
	if l.freezes == nil {
		state, err := l.app.foldLedger(l.ctx, l.site)
		if err != nil {
			return nil, err
		}
		files, err := l.app.freezeDir(l.site.cfg.Ledger.FreezeDir).List()
		if err != nil {
			return nil, err
		}
		l.freezes = web.Freezes(web.View{State: state, Files: files, Now: l.app.now()}, web.Filter{}).Items
	}
	var by []string
	for _, f := range l.freezes {
		if f.Active && (f.Service == "" || f.Service == service) && !slices.Contains(by, f.By) {
			by = append(by, f.By)
		}
	}
	return by, nil
}

// ask gets the list from a running agent. Any failure means that the ledger
// is read instead.
func (l *lister) ask(into any) error {
	q := url.Values{}
	if l.filter.Service != "" {
		q.Set("service", l.filter.Service)
	}
	if !l.filter.Since.IsZero() {
		q.Set("since", l.filter.Since.UTC().Format("2006-01-02T15:04:05Z07:00"))
	}
	path := "/api/v1/" + l.kind.name
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return newAgent(l.site.cfg.Web.Socket).do(l.ctx, readWait, message{method: http.MethodGet, path: path}, into)
}

func (l *lister) wide() bool { return l.output == formatWide }
