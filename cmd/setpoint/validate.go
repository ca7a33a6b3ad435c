package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// validation is the answer of `validate -o json`.
type validation struct {
	web.Meta
	Valid    bool          `json:"valid"`
	Faults   []faultItem   `json:"faults"`
	Notes    []faultItem   `json:"notes"`
	Ceilings []web.Ceiling `json:"ceilings"`
	Services int           `json:"services"`
	// Live is what the sources say, with --live only.
	Live *liveItem `json:"live,omitempty"`
}

type faultItem struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Path string `json:"path,omitempty"`
	Text string `json:"text"`
	// Lint is the code of what most often is a mistake; "" for a plain remark.
	Lint string `json:"lint,omitempty"`
}

func (a *app) validateCommand() *cobra.Command {
	var output string
	var live bool
	cmd := &cobra.Command{
		Use:   "validate [path...]",
		Short: "Check all that `run` needs, and show what each action may get",
		Long: `Check the configuration, the documents, and every file that they name: rules,
policy with its tests, prompts, secrets and tokens. One line a fault, with file
and line, and nothing is loaded while there is one. Without faults it shows the
ceiling of each action: the highest verdict that it can get, and why.

With paths, only those documents are checked.

With --live it also asks every source: whether it answers, its version and clock,
whether it keeps samples as long as each window, and for each objective whether
everything that its queries select is there (or stopped, or never was, and what
may have been meant), gives one series, is fresh, and was ever met. An error
among the findings is exit 1. Nothing is written.`,
		Example: `  setpoint validate
  setpoint validate slo/checkout.yaml
  setpoint validate -o json
  setpoint validate --live slo/checkout.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.validate(cmd.Context(), args, live, output)
		},
	}
	cmd.Flags().BoolVar(&live, "live", false, "also ask every source whether the documents can be measured there")
	outputFlag(cmd, &output, formatTable, formatJSON, formatYAML)
	return cmd
}

func (a *app) validate(ctx context.Context, paths []string, live bool, output string) error {
	set, maxMode, err := a.check(ctx, paths)
	var faults spec.Faults
	if err != nil && (output == formatTable || !errors.As(err, &faults)) {
		return err
	}
	set.Notes = append(set.Notes, over(set, a.now())...)
	var found *liveItem
	if live && err == nil {
		if found, err = a.liveOf(ctx, set); err != nil {
			return err
		}
	}
	if output == formatTable {
		return a.showValid(set, maxMode, found)
	}
	v := validationOf(set, maxMode, faults, found)
	if err := emit(a.out, output, v); err != nil {
		return err
	}
	if !v.Valid {
		return exitCode(exitError)
	}
	return nil
}

// over are notes of what has ended and still stands in the documents: somebody
// has to take it out, or renew it.
func over(set spec.Set, now time.Time) []spec.Note {
	var out []spec.Note
	for _, e := range set.Expired(now) {
		out = append(out, spec.Note{Pos: e.Pos, Lint: "expired", Text: fmt.Sprintf(
			"exception %s of %s expired at %s and limits nothing any more: remove or renew it", e.Name, e.Service, e.Until.UTC().Format(time.RFC3339))})
	}
	for _, m := range set.Past(now) {
		out = append(out, spec.Note{Pos: m.Pos, Lint: "expired", Text: fmt.Sprintf(
			"maintenance %s is over and will not come again: remove it", m.Name)})
	}
	return out
}

func validationOf(set spec.Set, maxMode spec.Mode, faults spec.Faults, found *liveItem) validation {
	v := validation{
		Meta:  web.Meta{APIVersion: spec.Group, Kind: "Validation"},
		Valid: len(faults) == 0 && (found == nil || found.healthy()), Faults: []faultItem{}, Notes: []faultItem{},
		Ceilings: web.Ceilings(set, maxMode), Services: len(set.Services), Live: found,
	}
	for _, f := range faults {
		v.Faults = append(v.Faults, faultItem{File: f.Pos.File, Line: f.Pos.Line, Path: f.Path, Text: f.Text})
	}
	for _, n := range set.Notes {
		v.Notes = append(v.Notes, faultItem{File: n.Pos.File, Line: n.Pos.Line, Text: n.Text, Lint: n.Lint})
	}
	return v
}

// liveOf asks the sources of the configuration.
func (a *app) liveOf(ctx context.Context, set spec.Set) (*liveItem, error) {
	s, err := a.site()
	if err != nil {
		return nil, fmt.Errorf("--live asks the sources of the configuration: %w", err)
	}
	return a.live(ctx, s, set)
}

// showValid writes a valid set for people, with what the sources say of it.
func (a *app) showValid(set spec.Set, maxMode spec.Mode, found *liveItem) error {
	if err := a.showCeilings(set, maxMode); err != nil || found == nil {
		return err
	}
	if err := a.showLive(found); err != nil {
		return err
	}
	if !found.healthy() {
		return exitCode(exitError)
	}
	return nil
}

// check finds every fault that can be found at once.
func (a *app) check(ctx context.Context, paths []string) (spec.Set, spec.Mode, error) {
	s, err := a.site()
	switch {
	case len(paths) > 0:
		return a.checkDocuments(s, err, paths)
	case err != nil:
		return spec.Set{}, spec.Observe, err
	}
	set, err := loadDocuments(s.cfg.Documents)
	if err == nil {
		err = s.fits(set, true)
	}
	var faults spec.Faults
	if err != nil {
		faults = s.fault("documents", err)
	}
	faults = append(faults, a.startFaults(ctx, s)...)
	if err := faults.Err(); err != nil {
		return spec.Set{}, spec.Observe, err
	}
	set.Notes = append(set.Notes, s.notes(set)...)
	if s.cfg.Ledger.Postgres != nil {
		a.say("setpoint: whether there is a ledger in PostgreSQL is not looked at; `setpoint ledger verify` does")
	} else if _, err := os.Stat(s.cfg.Ledger.SQLite.Path); errors.Is(err, fs.ErrNotExist) {
		a.say("setpoint: `run` also needs a ledger at %s: `setpoint ledger init` creates it", s.cfg.Ledger.SQLite.Path)
	}
	return set, s.cfg.Limits.MaxMode, nil
}

// checkDocuments checks some documents, with the configuration if there is
// one. A fault in it does not hide those of the documents.
func (a *app) checkDocuments(s site, siteErr error, paths []string) (spec.Set, spec.Mode, error) {
	var faults spec.Faults
	if err := collect(&faults, siteErr); err != nil && !errors.Is(err, errNoConfig) {
		return spec.Set{}, spec.Observe, err
	}
	set, err := loadDocuments(paths)
	if err == nil && siteErr == nil {
		err = s.fits(set, false)
	}
	if err := collect(&faults, err); err != nil {
		return spec.Set{}, spec.Observe, err
	}
	if err := faults.Err(); err != nil {
		return spec.Set{}, spec.Observe, err
	}
	if siteErr != nil {
		a.say("setpoint: %v; only the documents were checked", siteErr)
		return set, spec.Auto, nil
	}
	set.Notes = append(set.Notes, s.cfg.Unanswered(set)...)
	return set, s.cfg.Limits.MaxMode, nil
}

// fits checks the documents against the configuration. The rules are compared
// with the whole set only: a part of it may lack what they name. A rules file
// that does not load is a fault of its own.
func (s site) fits(set spec.Set, whole bool) error {
	var faults spec.Faults
	if err := collect(&faults, s.cfg.Validate(set)); err != nil {
		return err
	}
	if r, err := s.rules(); whole && err == nil {
		if err := collect(&faults, r.Validate(set)); err != nil {
			return err
		}
	}
	return faults.Err()
}

// collect keeps faults for later and returns any other error.
func collect(into *spec.Faults, err error) error {
	var more spec.Faults
	if errors.As(err, &more) {
		*into = append(*into, more...)
		return nil
	}
	return err
}

func (a *app) showCeilings(set spec.Set, maxMode spec.Mode) error {
	warnings := 0
	for _, n := range set.Notes {
		kind := "note"
		if n.Lint != "" {
			kind = "warning (" + n.Lint + ")"
			warnings++
		}
		if err := a.print("%s: %s: %s\n", n.Pos, kind, n.Text); err != nil {
			return err
		}
	}
	objectives := 0
	for _, svc := range set.Services {
		objectives += len(svc.Objectives)
		if svc.Remediation.Name == "" {
			if err := a.print("%s: no Remediation: measured and shown, never acted on\n", svc.Name); err != nil {
				return err
			}
		}
	}
	ceilings := web.Ceilings(set, maxMode)
	for _, c := range ceilings {
		if err := a.print("%s/%s: %s\n", c.Service, c.Action, ceilingText(c)); err != nil {
			return err
		}
	}
	summary := fmt.Sprintf("valid: %s, %s, %s", count(len(set.Services), "service"), count(objectives, "objective"), count(len(ceilings), "action"))
	if warnings > 0 {
		summary += ", " + count(warnings, "warning")
	}
	return a.print("%s\n", summary)
}

// ceilingText is one line of the table, e.g. "approval at most, because class
// approval; would also need …".
func ceilingText(c web.Ceiling) string {
	if len(c.Why) == 0 {
		return c.Ceiling
	}
	text := fmt.Sprintf("%s at most, because %s", c.Ceiling, and(c.Why))
	if c.Ceiling == "deny" {
		text = "deny, " + and(c.Why) + ": nothing is sent"
	}
	if len(c.AlsoNeed) > 0 {
		text += "; would also need " + and(c.AlsoNeed)
	}
	return text
}

// and joins words for a sentence: a, b and c.
func and(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
