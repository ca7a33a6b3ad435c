package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// initPlan is what init found in the documents.
type initPlan struct {
	documents []string
	// services counts those with an SLO.
	services int
	drafts   []draft
	// What the documents refer to, sorted.
	receivers, groups, allow, programs, secrets []string
}

// planInit reads the documents that setpoint.yaml in dir will name.
func planInit(dir, slo string) (initPlan, error) {
	p := initPlan{documents: []string{"slo/"}, groups: []string{"@oncall"}}
	where, err := p.where(dir, slo)
	if err != nil || where == "" {
		return p, err
	}
	set, err := loadDocuments([]string{where})
	if err != nil {
		return p, err
	}
	if len(set.Services) == 0 {
		return p, fmt.Errorf("init: %s declares no SLO", where)
	}
	p.services = len(set.Services)
	for _, svc := range set.Services {
		if svc.Remediation.Name == "" && slo != "" {
			p.draftFor(svc.Name, slo)
		}
		p.needs(svc.Remediation)
	}
	if slices.Contains(p.groups, "@oncall") && len(p.groups) > 1 && len(p.drafts) == 0 {
		p.groups = slices.DeleteFunc(p.groups, func(g string) bool { return g == "@oncall" })
	}
	return p, p.secretFiles(dir)
}

// where is the file or folder that setpoint.yaml will name; "" when there is
// nothing yet. The whole folder of an SLO file is loaded, so all of it has to
// fit, unless setpoint.yaml itself lies there.
func (p *initPlan) where(dir, slo string) (string, error) {
	if slo == "" {
		folder := filepath.Join(dir, "slo")
		found, err := filepath.Glob(filepath.Join(folder, "*.y*ml"))
		if err != nil || len(found) == 0 {
			return "", err
		}
		return folder, nil
	}
	folder := filepath.Dir(slo)
	within, err := relative(dir, folder)
	if err != nil {
		return "", err
	}
	if within == "." {
		p.documents = []string{filepath.Base(slo)}
		return slo, nil
	}
	p.documents = []string{within + "/"}
	return folder, nil
}

// draftFor drafts a Remediation beside the SLO file.
func (p *initPlan) draftFor(service, slo string) {
	name := filepath.Join(filepath.Dir(slo), service+".remediation.yaml")
	p.drafts = append(p.drafts, draft{name, remediationText(service), 0o644})
	if !strings.HasSuffix(p.documents[0], "/") {
		p.documents = append(p.documents, filepath.Base(name))
	}
}

// needs collects what a Remediation refers to in setpoint.yaml.
func (p *initPlan) needs(r spec.Remediation) {
	p.receivers = with(p.receivers, slices.Concat(r.Escalation.Receivers, r.Escalation.OwnerReceivers)...)
	for _, who := range r.Approvers {
		if strings.HasPrefix(who, "@") {
			p.groups = with(p.groups, who)
		}
	}
	for _, act := range r.Actions {
		p.allow = with(p.allow, origin(act.Target.URL), origin(act.Target.StatusURL))
		p.secrets = with(p.secrets, act.Target.Secret)
		for _, argv := range [][]string{act.Target.Argv, act.Target.StatusArgv} {
			if len(argv) > 0 {
				p.programs = with(p.programs, argv[0])
			}
		}
	}
}

// with adds values that are not there yet, and sorts.
func with(list []string, values ...string) []string {
	for _, v := range values {
		if v != "" && !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	slices.Sort(list)
	return list
}

// origin is the scheme and host of a URL, as an entry of an allow-list.
func origin(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host + "/"
}

// secretFiles drafts a new random secret for each name.
func (p *initPlan) secretFiles(dir string) error {
	for _, name := range p.secrets {
		random := make([]byte, 32)
		if _, err := rand.Read(random); err != nil {
			return fmt.Errorf("init: no randomness for a secret: %w", err)
		}
		p.drafts = append(p.drafts, draft{filepath.Join(dir, name+".key"), hex.EncodeToString(random) + "\n", 0o600})
	}
	return nil
}
