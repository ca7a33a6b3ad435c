package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

func directoryOf(file string) string { return filepath.Dir(file) }

// configChecks look at setpoint.yaml, the documents, and the files that hold
// secrets.
func (e *examination) configChecks() []examine {
	return []examine{{group: aboutConfig, subject: e.site.file, limit: localLimit, run: func(context.Context) []checkItem {
		out := []checkItem{e.configItem()}
		if errors.Is(e.siteErr, errNoConfig) {
			return out
		}
		out = append(out, e.documentsItem())
		out = append(out, e.secretItems()...)
		out = append(out, e.tokensItem())
		return append(out, e.changesItems()...)
	}}}
}

func (e *examination) configItem() checkItem {
	s := subject{"config/file", e.site.file}
	switch {
	case errors.Is(e.siteErr, errNoConfig):
		return s.failed("there is no such file", missingConfig(s.name))
	case e.siteErr != nil:
		return s.failed(faultsText(e.siteErr), "correct it there; `setpoint validate` shows every fault with file and line")
	}
	return s.fine("loads: %s, %s, ceiling %s", count(len(e.site.cfg.Sources), "source"),
		count(len(e.site.cfg.Receivers), "receiver"), e.site.cfg.Limits.MaxMode)
}

// missingConfig: who named a file meant that one, and init would write it too.
func missingConfig(file string) string {
	if file == defaultConfig {
		return "`setpoint init slo/checkout.yaml` writes one for an SLO; --config or SETPOINT_CONFIG names another"
	}
	return fmt.Sprintf("correct --config or SETPOINT_CONFIG, which names it; `setpoint init --config %s` writes it", file)
}

func (e *examination) documentsItem() checkItem {
	s := subject{"config/documents", words(e.site.cfg.Documents)}
	const show = "correct them there; `setpoint validate` shows every fault with file and line"
	if e.setErr != nil {
		return s.failed(faultsText(e.setErr), show)
	}
	if e.siteErr == nil {
		// The rules have a line of their own.
		if err := e.site.fits(e.set, false); err != nil {
			return s.failed(faultsText(err), show)
		}
	}
	return documentsVerdict(s, e.set, append(slices.Clone(e.set.Notes), over(e.set, e.now)...))
}

// documentsVerdict tells of documents without faults.
func documentsVerdict(s subject, set spec.Set, notes []spec.Note) checkItem {
	actions, objectives := 0, 0
	for _, svc := range set.Services {
		actions += len(svc.Remediation.Actions)
		objectives += len(svc.Objectives)
	}
	lints := slices.DeleteFunc(notes, func(n spec.Note) bool { return n.Lint == "" })
	text := fmt.Sprintf("%s, %s, %s", count(len(set.Services), "service"), count(objectives, "objective"), count(actions, "action"))
	switch {
	case len(set.Services) == 0:
		return s.warned("no service: the agent measures nothing", "name the folder of your SLO files under documents in setpoint.yaml")
	case len(lints) > 0:
		return s.warned(fmt.Sprintf("%s; %s, the first: %s: %s", text, count(len(lints), "warning"), lints[0].Pos, lints[0].Text),
			"`setpoint validate` shows them; what they say most often is a mistake")
	}
	return s.fine("%s", text)
}

func (e *examination) tokensItem() checkItem {
	s := subject{"config/tokens", "web.tokensFile"}
	file := e.site.cfg.Web.TokensFile
	if file == "" {
		return s.skipped("not configured: commands go over the socket alone")
	}
	tokens, err := e.site.tokens()
	if err != nil {
		return s.failed(faultsText(err), "correct "+file+": one `name: token` a line, tokens of 16 characters or more")
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o004 != 0 {
		return s.warned(fmt.Sprintf("every user of this host can read %s", file), "`chmod 600 "+file+"`, and renew the tokens")
	}
	return s.fine("%s: %s", file, count(tokens.Len(), "token"))
}
