package spec

import (
	"slices"
	"strconv"
	"time"
)

// slothWindows are those over which Sloth's rules record the error ratio. It
// records the period of the SLO besides, which is one of slothPeriods.
var (
	slothWindows = []time.Duration{5 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, day, 3 * day}
	slothPeriods = []time.Duration{28 * day, 30 * day}
)

const slothWindowsText = "5m, 30m, 1h, 2h, 6h, 1d, 3d, and 28d or 30d as the SLO's own window"

// slothRatio is the error ratio as Sloth's rules record it.
func slothRatio(service, slo string) string {
	return "slo:sli_error:ratio_rate{{.window}}{sloth_service=" + strconv.Quote(service) + ", sloth_slo=" + strconv.Quote(slo) + "}"
}

// record makes the first vantage point read the ratios that Sloth's rules
// record, which costs the source nothing, and checks that there are such.
func (j judged) record() {
	if j.by.Recorded == nil || *j.by.Recorded != "sloth" {
		return
	}
	at := j.at("recorded")
	switch {
	case j.owns(0):
		j.add(j.doc.Fault(at, "is beside queries of the first vantage point: remove one of them"))
	case j.o.Slice > 0:
		j.add(j.doc.Fault(at, "is for Occurrences: Sloth records no time slices, so its ratio would be another promise: remove it"))
	case j.by.MinEvents != nil && *j.by.MinEvents > 0:
		j.add(j.doc.Fault(j.at("minEvents"), "is beside recorded: a ratio has no counts that could be too few: remove one of them"))
	}
	j.checkRecordedWindows(at)
	source := ""
	if qs := j.o.Indicator.Queries(); len(qs) > 0 {
		source = qs[0].Source
	}
	j.o.Indicator = Indicator{Raw: &Query{
		Expr: slothRatio(j.service, j.o.SLO), Recorded: true, Source: source, Pos: j.doc.Positions().At(at),
	}}
}

func (j judged) checkRecordedWindows(at string) {
	for _, s := range j.o.spans() {
		period := s.length == j.o.Window && slices.Contains(slothPeriods, s.length)
		if period || slices.Contains(slothWindows, s.length) {
			continue
		}
		if path := j.at(s.key); path != "" {
			j.add(j.doc.Fault(path, "is %s, over which Sloth records nothing: use %s", FormatDuration(s.length), slothWindowsText))
			continue
		}
		j.add(j.doc.Fault(at, "%s is %s, over which Sloth records nothing, only %s: remove recorded, or change the window",
			s.name, FormatDuration(s.length), slothWindowsText))
	}
}
