package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/changefile"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// changeFeed is the file of changes; nil where none is configured.
func (a *app) changeFeed(s site, o changefile.Options) *changefile.File {
	if s.cfg.Changes.File == "" {
		return nil
	}
	o.Path, o.Now = s.cfg.Changes.File, a.now
	return changefile.New(o)
}

// showContext gives a proposer what it is shown beside the assessment: evidence
// and changes.
func (w *wiring) showContext(a *app, measurer *prom.Fleet, f purpose) {
	w.options.Asker = measurer
	var loaded atomic.Pointer[spec.Set]
	documents := w.options.Documents
	w.options.Documents = func() (spec.Set, error) {
		set, err := documents()
		if err == nil {
			loaded.Store(&set)
		}
		return set, err
	}
	f.feed.Unknown = func(service string) string { return notIn(loaded.Load(), service) }
	if w.feed = a.changeFeed(w.site, f.feed); w.feed != nil {
		w.options.Feed = w.feed
	}
}

// notIn says that the documents have no such service; "" where they do, or where
// none are loaded.
func notIn(set *spec.Set, service string) string {
	if set == nil {
		return ""
	}
	if _, ok := set.Service(service); ok {
		return ""
	}
	return unknownService(*set, service).Error()
}

// watchChanges looks at the file once a sweep, so that a bad line is named when
// it is written and not in the next incident. It costs one stat.
func (d *daemon) watchChanges() {
	if d.feed == nil {
		return
	}
	d.beside = append(d.beside, func(ctx context.Context) {
		d.feed.Look()
		tick := time.NewTicker(d.site.cfg.Sweep.Interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				d.feed.Look()
			}
		}
	})
}

func showChanges(l *lister) error {
	build := func(v web.View, f web.Filter) web.List[web.Change] {
		var set *spec.Set
		if v.Undeclared == nil {
			set = &v.Set
		}
		feed := l.app.changeFeed(l.site, changefile.Options{
			Notice:  func(text string) { l.app.say("setpoint: %s", text) },
			Unknown: func(service string) string { return notIn(set, service) },
		})
		if feed != nil {
			v.Changes = feed.All()
		}
		return web.Changes(v, f)
	}
	return list(build, changesTable)(l)
}

func changesTable(l *lister, items []web.Change) (*table, []string) {
	t := columns(l, []string{"SERVICE", "WHAT", "VERSION", "AGE"}, "TIME", "FROM")
	var names []string
	now := l.app.now()
	for _, c := range items {
		names = append(names, fmt.Sprintf("change/%s/%s", c.Service, c.Time.Format(time.RFC3339)))
		t.row(l, []string{c.Service, c.What, orDash(c.Version), timeAge(&c.Time, now)}, c.Time.Format(time.RFC3339), c.From)
	}
	return t, names
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (a *app) changeCommand() *cobra.Command {
	return group("change", "The change feed: what was done to a service, and when", a.changeRecordCommand())
}

func (a *app) changeRecordCommand() *cobra.Command {
	var body web.ChangeRequest
	var at string
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Say that a service was changed",
		Long: `Say that a service was changed, e.g. by a deploy. It is context for whoever
proposes, and the shipped policy asks a person for half an hour after it; it wakes
nothing, and makes nothing more permitted. Times are cut to whole seconds, and
the same change at the same second is no second one: whoever may repeat the
command gives the time with --at, e.g. 2026-11-29T12:00:00Z.`,
		Example: `  setpoint change record --service checkout --what deploy --version v42
  setpoint change record --service checkout --what flag --version new-cart=on --at 5m`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if body.Service == "" || body.What == "" {
				return usageError(cmd, "--service and --what are required: say what was done to whom")
			}
			body.Time = measure.ChangeTime(a.now())
			if at != "" {
				t, err := web.ParseSince(at, a.now())
				if err != nil {
					return usageError(cmd, "--at: %v", err)
				}
				body.Time = measure.ChangeTime(t)
			}
			return a.recordChange(cmd.Context(), body)
		},
	}
	cmd.Flags().StringVar(&body.Service, "service", "", "the service (required)")
	cmd.Flags().StringVar(&body.What, "what", "", "what was done, e.g. deploy, flag, migration (required)")
	cmd.Flags().StringVar(&body.Version, "version", "", "to which version")
	cmd.Flags().StringVar(&at, "at", "", "when: a duration ago such as 5m, or a time (default: now)")
	return cmd
}

func (a *app) recordChange(ctx context.Context, body web.ChangeRequest) error {
	s, err := a.site()
	if err != nil {
		return err
	}
	set, err := s.documents()
	if err != nil {
		return err
	}
	if _, ok := set.Service(body.Service); !ok {
		return unknownService(set, body.Service)
	}
	changes, err := web.CheckChanges(set, []web.ChangeRequest{body}, a.now().UTC())
	if err != nil {
		return err
	}
	var done web.Changed
	err = a.recordInto(ctx, s, message{http.MethodPost, "/hooks/changes", body}, &done, func(d *reconcile.Desk) error {
		fresh, err := d.Change(ctx, changes, actor())
		done = web.ChangedAnswer(len(changes), fresh)
		return err
	})
	if err != nil {
		return fmt.Errorf("change record: %w", err)
	}
	if done.Duplicate {
		return a.print("%s of %s at %s is recorded already; nothing was added\n", body.What, body.Service, body.Time.Format(time.RFC3339))
	}
	return a.print("%s of %s at %s recorded by %s\n", body.What, body.Service, body.Time.Format(time.RFC3339), actor())
}
