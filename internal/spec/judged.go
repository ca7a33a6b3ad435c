package spec

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// override changes how an objective is judged.
type override struct {
	JudgeWindow *time.Duration `yaml:"judgeWindow"`
	MinEvents   *float64       `yaml:"minEvents"`
	AbsentBad   *string        `yaml:"absentBad"`
	Sources     []vantageDoc   `yaml:"sources"`
	Recorded    *string        `yaml:"recorded"`
	BurnRates   []burnRateDoc  `yaml:"burnRates"`
	Outcomes    outcomeShares  `yaml:"outcomes"`
}

// outcomeShares are those of one objective; what is absent is the Remediation's.
type outcomeShares struct {
	Improved *float64 `yaml:"improved"`
	Worsened *float64 `yaml:"worsened"`
}

func (s outcomeShares) but(narrow outcomeShares) outcomeShares {
	if narrow.Improved != nil {
		s.Improved = narrow.Improved
	}
	if narrow.Worsened != nil {
		s.Worsened = narrow.Worsened
	}
	return s
}

type burnRateDoc struct {
	Short  time.Duration `yaml:"short,required"`
	Long   time.Duration `yaml:"long,required"`
	Factor float64       `yaml:"factor,required"`
	Page   bool          `yaml:"page"`
}

// but is the override with the keys that a narrower one has in place of its own.
func (by override) but(narrow override) override {
	if narrow.JudgeWindow != nil {
		by.JudgeWindow = narrow.JudgeWindow
	}
	if narrow.MinEvents != nil {
		by.MinEvents = narrow.MinEvents
	}
	if narrow.AbsentBad != nil {
		by.AbsentBad = narrow.AbsentBad
	}
	if len(narrow.Sources) > 0 {
		by.Sources = narrow.Sources
	}
	if narrow.Recorded != nil {
		by.Recorded = narrow.Recorded
	}
	if len(narrow.BurnRates) > 0 {
		by.BurnRates = narrow.BurnRates
	}
	by.Outcomes = by.Outcomes.but(narrow.Outcomes)
	return by
}

func (by override) apply(o *Objective) {
	if by.JudgeWindow != nil {
		o.JudgeWindow = *by.JudgeWindow
	}
	if by.MinEvents != nil {
		o.MinEvents = *by.MinEvents
	}
	if len(by.BurnRates) > 0 {
		o.BurnRates = nil
		for _, b := range by.BurnRates {
			o.BurnRates = append(o.BurnRates, BurnRate(b))
		}
	}
	o.Outcomes = Outcomes{Improved: deref(by.Outcomes.Improved), Worsened: deref(by.Outcomes.Worsened)}
	document := o.Indicator
	for i, s := range by.Sources {
		if in := s.indicator(document); i == 0 {
			o.Indicator, o.Others = in, nil
		} else {
			o.Others = append(o.Others, in)
		}
	}
	if by.AbsentBad != nil {
		o.Indicator.absentBad(*by.AbsentBad == "zero")
		for i := range o.Others {
			o.Others[i].absentBad(*by.AbsentBad == "zero")
		}
	}
}

func (i *Indicator) absentBad(zero bool) {
	if i.Total != nil {
		i.AbsentBadZero = zero
	}
}

// judged is an objective with the Remediation that says how it is judged.
type judged struct {
	*loader

	service string
	o       *Objective
	by      override
	// doc is nil without a Remediation.
	doc *Document
}

// judge gives an objective what the overrides by its SLO and by its own name
// say, of which the latter wins, and checks what depends on it.
func (l *loader) judge(service string, o *Objective, r *remediation) {
	j := judged{loader: l, service: service, o: o}
	if r != nil {
		j.doc, j.by = &r.doc, r.overrides[o.SLO]
		if o.ID != o.SLO {
			j.by = j.by.but(r.overrides[o.ID])
		}
	}
	j.by.apply(o)
	j.checkVantages()
	j.record()
	j.checkSlices()
	if r == nil {
		j.dropIdle()
	}
	for i, b := range o.BurnRates {
		j.checkBurnRate(i, b)
	}
}

// dropIdle takes out default pairs that no error ratio could make burn, where
// nobody may act anyway: a Remediation has to say what it wants instead.
func (j judged) dropIdle() {
	kept := slices.DeleteFunc(slices.Clone(j.o.BurnRates), func(b BurnRate) bool { return b.Factor*(1-j.o.Target) >= 1 })
	if len(kept) == len(j.o.BurnRates) || len(kept) == 0 || j.o.Target <= 0 {
		return
	}
	for _, b := range j.o.BurnRates {
		if !slices.Contains(kept, b) {
			j.remarks = append(j.remarks, Note{Pos: j.o.Pos, Text: fmt.Sprintf(
				"objective %q: the default burn rate %s/%s %s, and is left out: give burnRates in spec.objectives of a Remediation",
				j.o.ID, FormatDuration(b.Short), FormatDuration(b.Long), burnText(b.Factor, j.o.Target))})
		}
	}
	j.o.BurnRates = kept
}

// at returns the path of an override's key, or "" when no override has it.
func (j judged) at(key string) string {
	if j.doc == nil || key == "" {
		return ""
	}
	for _, name := range []string{j.o.ID, j.o.SLO} {
		if path := KeyPath("spec.objectives", name) + "." + key; j.doc.Has(path) {
			return path
		}
	}
	return ""
}

// faultAt points at the override's key where there is one, otherwise at the
// objective; asDefault tells there what the value is and where to change it.
func (j judged) faultAt(key, given, asDefault string) {
	if path := j.at(key); path != "" {
		j.add(j.doc.Fault(path, "%s", given))
		return
	}
	j.add(Fault{Pos: j.o.Pos, Text: fmt.Sprintf("objective %q: %s", j.o.ID, asDefault)})
}

// checkBurnRate checks that a pair can burn.
func (j judged) checkBurnRate(i int, b BurnRate) {
	o, text := j.o, ""
	switch {
	case o.Target <= 0 || o.Window <= 0:
		return // Is a fault already.
	case b.Factor*(1-o.Target) >= 1:
		text = burnText(b.Factor, o.Target)
	case b.Long > o.Window:
		text = fmt.Sprintf("has long window %s, longer than the SLO's own window %s", FormatDuration(b.Long), FormatDuration(o.Window))
	default:
		return
	}
	j.faultAt(IndexPath("burnRates", i), text, fmt.Sprintf(
		"the default burn rate %s/%s %s: give burnRates in spec.objectives of a Remediation", FormatDuration(b.Short), FormatDuration(b.Long), text))
}

// span is one of the windows of an objective with what it is called, and the
// key of the override that sets it; "" for the SLO's own.
type span struct {
	name, key string
	length    time.Duration
}

func (o Objective) spans() []span {
	all := []span{{"the judge window", "judgeWindow", o.JudgeWindow}}
	for i, b := range o.BurnRates {
		at := IndexPath("burnRates", i)
		all = append(all, span{"the short window", at + ".short", b.Short}, span{"the long window", at + ".long", b.Long})
	}
	all = append(all, span{"the SLO's own window", "", o.Window})
	return slices.DeleteFunc(all, func(s span) bool { return s.length <= 0 })
}

// checkSlices refuses a window into which not even one time slice fits.
func (j judged) checkSlices() {
	for _, s := range j.o.spans() {
		if s.length >= j.o.Slice {
			continue
		}
		text := fmt.Sprintf("is %s, shorter than the SLO's time slices of %s: ", FormatDuration(s.length), FormatDuration(j.o.Slice))
		least := FormatDuration(j.o.Slice) + " or more"
		switch {
		case s.key == "":
			j.faultAt("", "", s.name+" "+text+"make it longer, or the slices shorter")
		case strings.HasPrefix(s.key, "burnRates"):
			j.faultAt(s.key, text+"give "+least, "the default "+strings.TrimPrefix(s.name, "the ")+" of a burn rate "+text+
				"give burnRates with windows of "+least+" in spec.objectives of a Remediation")
		default:
			j.faultAt(s.key, text+"give "+least, "the default "+strings.TrimPrefix(s.name, "the ")+" "+text+
				"give judgeWindow, "+least+", in spec.objectives of a Remediation")
		}
	}
}
