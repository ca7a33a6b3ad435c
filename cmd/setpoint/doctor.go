package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// The groups of checks, in the order in which they are shown.
const (
	aboutConfig    = "config"
	aboutSources   = "sources"
	aboutModel     = "model"
	aboutPrompts   = "prompts"
	aboutReceivers = "receivers"
	aboutExecutors = "executors"
	aboutLedger    = "ledger"
	aboutPolicies  = "policies"
	aboutWeb       = "web"
)

func checkGroups() []string {
	return []string{
		aboutConfig, aboutSources, aboutModel, aboutPrompts, aboutReceivers, aboutExecutors, aboutLedger, aboutPolicies, aboutWeb,
	}
}

// doctorFlags are what is looked at, and how it is shown.
type doctorFlags struct {
	only    []string
	service string
	dryRun  bool
	output  string
}

func (a *app) doctorCommand() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check all that the agent needs, before the incident, with what to do",
		Long: `Check everything that the agent needs before it is needed: configuration and
documents, sources, model, prompts, receivers, executors, ledger, policies, and
the agent itself. All of it is asked at once, each within a time of its own, and
a fault of one hides no other. It works beside a running agent and without one.

Nothing is written, no page is sent and no action. Sources are asked small
queries, a model small questions about no service (which cost tokens), actuators
for their status, as each pass does. Only with --dry-run is an actuator whose
action says dedup: true sent two POSTs, with "dryRun": true and a key of no
window: one that ignores dryRun would act.

Exit 0 when nothing failed, warnings included; 1 when something did.`,
		Example: `  setpoint doctor
  setpoint doctor --only sources,model
  setpoint doctor --only executors --service checkout --dry-run
  setpoint doctor -o json | jq '.items[] | select(.result == "fail")'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if why := unknownGroups(f.only, cmd.Flags().Changed("only")); why != "" {
				return usageError(cmd, "--only: %s", why)
			}
			return a.doctor(cmd.Context(), f)
		},
	}
	cmd.Flags().StringSliceVar(&f.only, "only", nil, "only these groups: "+strings.Join(checkGroups(), ","))
	cmd.Flags().StringVar(&f.service, "service", "", "of the documents, only this service")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, `send actuators that say dedup: true a POST with "dryRun": true, twice`)
	outputFlag(cmd, &f.output, formatTable, formatWide, formatJSON, formatYAML)
	return cmd
}

// unknownGroups says what is wrong with the groups that were asked for; "" when
// nothing is. To look at everything where none was named would look as if all of
// what was meant is well.
func unknownGroups(only []string, asked bool) string {
	all := strings.Join(checkGroups(), ",")
	if asked && len(only) == 0 {
		return "it names nothing, want some of " + all
	}
	for _, group := range only {
		switch near := meantGroup(group); {
		case slices.Contains(checkGroups(), group):
		case near != "":
			return fmt.Sprintf("nothing is called %q, did you mean %s? There are %s", group, near, all)
		default:
			return fmt.Sprintf("nothing is called %q, want some of %s", group, all)
		}
	}
	return ""
}

// meantGroup is the group that a word most likely means: one that is spelt alike,
// or begins alike, as policy and exec do; "" for none.
func meantGroup(word string) string {
	if near := spec.Nearest(word, checkGroups()); near != "" {
		return near
	}
	for _, group := range checkGroups() {
		if len(word) >= 3 && strings.HasPrefix(group, word[:3]) {
			return group
		}
	}
	return ""
}

func (a *app) doctor(ctx context.Context, f doctorFlags) error {
	e := a.examination(f)
	if _, ok := e.set.Service(f.service); f.service != "" && e.setErr == nil && !ok {
		return unknownService(e.set, f.service)
	}
	report := reportOf(e.items(ctx))
	if err := a.showDoctor(report, f.output); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted before every check had ended")
	case report.Counts[resultFail] > 0:
		return exitCode(exitError)
	}
	return nil
}

// examination is what the checks look at. What does not load is left out, and
// the checks that need it say so.
type examination struct {
	app   *app
	flags doctorFlags
	site  site
	// siteErr: the configuration has faults; site then holds what could be read
	// of it.
	siteErr error
	set     spec.Set
	// setErr: the documents have faults, and set is empty.
	setErr error
	now    time.Time
}

func (a *app) examination(f doctorFlags) *examination {
	e := &examination{app: a, flags: f, now: a.now()}
	if e.site, e.siteErr = a.site(); e.siteErr != nil {
		e.site = a.looseSite()
	}
	switch {
	case errors.Is(e.siteErr, errNoConfig):
		e.setErr = errors.New("there is no configuration")
	default:
		e.set, e.setErr = loadDocuments(e.site.cfg.Documents)
	}
	return e
}

// looseSite is what can be understood of a configuration with faults: enough to
// look at what it names, too little to run with.
func (a *app) looseSite() site {
	file := a.configFile()
	s := site{file: file, cfg: config.Default()}
	if data, err := readRegular(file); err == nil {
		doc, _ := spec.OneDocument(spec.File{Name: file, Data: data}) // Its faults are known.
		_ = doc.Decode(&s.cfg)
		s.positions = doc.Positions()
	}
	s.cfg.SetDirectory(directoryOf(file))
	return s
}

// without says which part of what a check needs does not load; "" when all of it
// does.
func (e *examination) without() string {
	switch {
	case errors.Is(e.siteErr, errNoConfig):
		return "there is no configuration"
	case e.siteErr != nil:
		return "the configuration has faults"
	case e.setErr != nil:
		return "the documents have faults"
	}
	return ""
}

// services are those of the documents that are looked at.
func (e *examination) services() []spec.Service {
	if e.flags.service == "" {
		return e.set.Services
	}
	return slices.DeleteFunc(slices.Clone(e.set.Services), func(s spec.Service) bool { return s.Name != e.flags.service })
}

// examine is one check of its own: it runs beside the others.
type examine struct {
	group, subject string
	// limit is how long it may take.
	limit time.Duration
	run   func(ctx context.Context) []checkItem
}

// The times that checks may take. Each part bounds itself below that; this is
// for what hangs all the same.
const (
	localLimit  = 30 * time.Second
	remoteLimit = 45 * time.Second
	ledgerLimit = 60 * time.Second
	testsLimit  = 90 * time.Second
	// allLimit bounds all of them together, however many services there are.
	allLimit = 5 * time.Minute
	// atOnce is how many checks run at a time: most of them wait.
	atOnce = 16
)

// examines are the checks that were asked for, in the order in which they are
// shown.
func (e *examination) examines() []examine {
	all := e.configChecks()
	if errors.Is(e.siteErr, errNoConfig) {
		// The defaults are nobody's: to judge them would be noise.
		for _, group := range checkGroups()[1:] {
			all = append(all, skipAll(group, "there is no configuration")...)
		}
	} else {
		all = slices.Concat(
			all, e.sourceChecks(), e.modelChecks(), e.promptChecks(), e.receiverChecks(),
			e.executorChecks(), e.ledgerChecks(), e.policyChecks(), e.webChecks(),
		)
	}
	return slices.DeleteFunc(all, func(x examine) bool {
		return len(e.flags.only) > 0 && !slices.Contains(e.flags.only, x.group)
	})
}

// items runs all checks and returns their lines in order.
func (e *examination) items(ctx context.Context) []checkItem {
	ctx, cancel := context.WithTimeout(ctx, allLimit)
	defer cancel()
	all := e.examines()
	found := make([][]checkItem, len(all))
	w := waiting{app: e.app, left: map[string]int{}}
	for _, x := range all {
		w.left[x.group]++
	}
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for n, x := range all {
		wg.Go(func() {
			defer w.done(x.group)
			slots <- struct{}{}
			defer func() { <-slots }()
			if ctx.Err() != nil {
				found[n] = []checkItem{unended(x.group, x.subject, allLimit, ctx.Err())}
				return
			}
			found[n] = x.bounded(ctx)
		})
	}
	w.show()
	wg.Wait()
	e.app.progress("")
	return slices.Concat(found...)
}

// bounded runs a check. One that panics or hangs is one line of the table, and
// keeps no other from being shown.
func (x examine) bounded(ctx context.Context) []checkItem {
	ctx, cancel := context.WithTimeout(ctx, x.limit)
	defer cancel()
	began := time.Now()
	done := make(chan []checkItem, 1)
	go func() {
		defer func() {
			if caught := recover(); caught != nil {
				done <- []checkItem{broken(x.group, x.subject, fmt.Sprint(caught))}
			}
		}()
		done <- x.run(ctx)
	}()
	var out []checkItem
	select {
	case out = <-done:
	case <-ctx.Done():
		// What ends in time by itself has more to say than that it did not.
		select {
		case out = <-done:
		case <-time.After(time.Second):
			out = []checkItem{unended(x.group, x.subject, x.limit, ctx.Err())}
		}
	}
	took := time.Since(began).Seconds()
	for i := range out {
		if out[i].TookSeconds == 0 {
			out[i].TookSeconds = took
		}
	}
	return out
}

// waiting shows on a terminal what is still under way.
type waiting struct {
	app  *app
	mu   sync.Mutex
	left map[string]int
}

func (w *waiting) done(group string) {
	w.mu.Lock()
	w.left[group]--
	w.mu.Unlock()
	w.show()
}

func (w *waiting) show() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var open []string
	for _, g := range checkGroups() {
		if w.left[g] > 0 {
			open = append(open, g)
		}
	}
	w.app.progress("looking at %s", strings.Join(open, ", "))
}
