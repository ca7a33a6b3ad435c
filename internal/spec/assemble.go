package spec

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// remediate gives each service its Remediation, and each objective what that
// says about it.
func (l *loader) remediate(set Set) {
	given := l.given(set)
	for i := range set.Services {
		svc := &set.Services[i]
		r := given[svc.Name]
		if r != nil {
			svc.Remediation = r.value
		}
		for k := range svc.Objectives {
			l.judge(svc.Name, &svc.Objectives[k], r)
		}
		if r != nil {
			l.checkOverrides(*svc, *r)
		}
	}
}

// given is the Remediation of each service that has one.
func (l *loader) given(set Set) map[string]*remediation {
	first := map[string]*remediation{}
	for i := range l.remediations {
		r := &l.remediations[i]
		name := r.value.Service
		if name == "" {
			continue // The missing key is a fault already.
		}
		if other, dup := first[name]; dup {
			l.add(r.doc.Fault("spec.service", "service %q has the Remediation %q in %s already: a service has one",
				name, other.value.Name, other.doc.Pos))
			continue
		}
		first[name] = r
		if svc, ok := set.Service(name); !ok || len(svc.Objectives) == 0 {
			l.add(r.doc.Fault("spec.service", "service %q has no SLO in these documents, %s", name, didYouMean(name, set.promised())))
		}
	}
	return first
}

// promised are the names of the services that have an SLO.
func (s Set) promised() []string {
	var names []string
	for _, svc := range s.Services {
		if len(svc.Objectives) > 0 {
			names = append(names, svc.Name)
		}
	}
	return names
}

// checkOverrides checks that each override is about something.
func (l *loader) checkOverrides(svc Service, r remediation) {
	var known []string
	for _, o := range svc.Objectives {
		known = append(known, o.SLO, o.ID)
	}
	for _, name := range sortedKeys(r.overrides) {
		if len(known) > 0 && !slices.Contains(known, name) {
			l.add(r.doc.Fault(KeyPath("spec.objectives", name), "service %q has no SLO or objective of that name, %s",
				svc.Name, didYouMean(name, slices.Compact(slices.Sorted(slices.Values(known))))))
		}
		if r.overrides[name].AbsentBad == nil {
			continue
		}
		for _, o := range svc.Objectives {
			if (o.SLO == name || o.ID == name) && !slices.ContainsFunc(o.Vantages(), func(i Indicator) bool { return i.Total != nil }) {
				l.add(r.doc.Fault(KeyPath("spec.objectives", name)+".absentBad", "is for a ratio of good or bad to total; this SLO is %s", o.kind()))
			}
		}
	}
}

// kind says what an objective without a total is measured by.
func (o Objective) kind() string {
	if raw := o.Indicator.Raw; raw != nil && raw.Recorded {
		return "read as recorded ratios"
	}
	return "raw"
}

// checkNames refuses two documents of one kind with one name.
func (l *loader) checkNames(set Set) {
	first := map[string]Position{}
	once := func(kind string, d Document) {
		key := kind + " " + d.Name
		if at, dup := first[key]; dup && d.Name != "" {
			l.add(d.Fault("metadata.name", "%s %q is in %s already", kind, shorten(d.Name), at))
			return
		}
		first[key] = d.Pos
	}
	for _, r := range l.remediations {
		once("Remediation", r.doc)
	}
	for _, m := range l.maintenances {
		once("Maintenance", m.doc)
	}
	for _, e := range l.exceptions {
		once("Exception", e.doc)
	}
	for _, svc := range set.Services {
		for i := 1; i < len(svc.Objectives); i++ {
			if a, b := svc.Objectives[i-1], svc.Objectives[i]; a.ID == b.ID && !strings.HasSuffix(b.ID, "/") {
				l.add(Fault{Pos: b.Pos, Text: fmt.Sprintf("objective %q of service %q is in %s already", b.ID, svc.Name, a.Pos)})
			}
		}
	}
}

// checkReferences resolves every name of a service.
func (l *loader) checkReferences(set Set) {
	resolve := func(d Document, path, name string) {
		svc, ok := set.Service(name)
		switch {
		case name == "":
		case !ok:
			l.add(d.Fault(path, "there is no service %q, %s", shorten(name), didYouMean(name, set.promised())))
		case len(svc.Objectives) == 0:
			l.add(d.Fault(path, "service %q has no SLO, so its state is never known", name))
		}
	}
	for _, r := range l.remediations {
		for i, name := range r.value.DependsOn {
			resolve(r.doc, IndexPath("spec.dependsOn", i), name)
		}
	}
	for _, m := range l.maintenances {
		for i, name := range m.value.Services {
			resolve(m.doc, IndexPath("spec.services", i), name)
		}
	}
	for _, e := range l.exceptions {
		resolve(e.doc, "spec.service", e.value.Service)
	}
}

// checkCycles names each cycle of dependsOn once: services in a cycle would
// hold one another for ever.
func (l *loader) checkCycles(set Set) {
	docs := map[string]Document{}
	for _, r := range l.remediations {
		docs[r.value.Service] = r.doc
	}
	done := map[string]bool{}
	var path []string
	var visit func(name string)
	visit = func(name string) {
		if i := slices.Index(path, name); i >= 0 {
			cycle := append(slices.Clone(path[i:]), name)
			l.add(docs[path[len(path)-1]].Fault("spec.dependsOn", "is a cycle: %s", strings.Join(cycle, " -> ")))
			return
		}
		if done[name] {
			return
		}
		path = append(path, name)
		if svc, ok := set.Service(name); ok {
			for _, next := range svc.Remediation.DependsOn {
				visit(next)
			}
		}
		path = path[:len(path)-1]
		done[name] = true
	}
	for _, svc := range set.Services {
		visit(svc.Name)
	}
}

// checkService checks what needs both the SLOs and the Remediation.
func (l *loader) checkService(svc *Service) {
	var doc *Document
	for i, r := range l.remediations {
		if r.value.Service == svc.Name {
			doc = &l.remediations[i].doc
			break
		}
	}
	var longest time.Duration
	for _, o := range svc.Objectives {
		longest = max(longest, o.JudgeWindow)
	}
	if doc == nil {
		return
	}
	for i, a := range svc.Remediation.Actions {
		if within := svc.Remediation.EscalateWithin; a.Settle+longest > within {
			l.add(doc.Fault(IndexPath("spec.actions", i)+".settle",
				"is %s; with the judge window %s that is longer than escalateWithin %s, so the page would come before the verdict",
				FormatDuration(a.Settle), FormatDuration(longest), FormatDuration(within)))
		}
	}
}

// notes are remarks on what was read and changes nothing.
func (l *loader) notes(set Set) []Note {
	notes := l.remarks
	for _, r := range l.readings {
		for _, s := range r.Services {
			if svc, ok := set.Service(s.Name); ok && len(svc.Objectives) == 0 {
				notes = append(notes, Note{Pos: s.Pos, Text: fmt.Sprintf("service %q has no SLO: nothing is measured", s.Name)})
			}
		}
	}
	for _, svc := range set.Services {
		for _, o := range svc.Objectives {
			if !slices.ContainsFunc(o.BurnRates, func(b BurnRate) bool { return b.Page }) {
				notes = append(notes, Note{Pos: o.Pos, Text: fmt.Sprintf("objective %q has no burn rate with page: true, so it is shown and never breached", o.ID)})
			}
		}
	}
	return slices.Concat(notes, lint(set), lintEvidence(set))
}
