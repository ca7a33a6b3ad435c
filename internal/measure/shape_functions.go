package measure

import (
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// What is not in these tables is refused, so that a function of a later
// Prometheus is until somebody has thought about it.
var (
	// constants give a number that no series has a part in.
	constants = wordSet("time pi start end step range min_of max_of")

	// ownSeries look at one series at a time and leave its labels, the name
	// aside.
	ownSeries = wordSet(`abs acos acosh asin asinh atan atanh ceil clamp clamp_max clamp_min cos cosh
		day_of_month day_of_week day_of_year days_in_month deg exp floor hour ln log10 log2 minute month
		rad round sgn sin sinh sqrt start_timestamp tan tanh timestamp year
		changes delta deriv idelta increase irate predict_linear rate resets
		avg_over_time count_over_time first_over_time last_over_time mad_over_time max_over_time
		min_over_time present_over_time quantile_over_time stddev_over_time stdvar_over_time sum_over_time
		ts_of_first_over_time ts_of_last_over_time ts_of_max_over_time ts_of_min_over_time`)

	// histograms take the buckets of one histogram together by the label le,
	// and leave the other labels.
	histograms = wordSet(`histogram_avg histogram_count histogram_fraction histogram_quantile
		histogram_stddev histogram_stdvar histogram_sum`)

	aggregators = map[parser.ItemType]bool{
		parser.SUM: true, parser.MIN: true, parser.MAX: true, parser.AVG: true, parser.COUNT: true,
		parser.GROUP: true, parser.STDDEV: true, parser.STDVAR: true, parser.QUANTILE: true,
	}

	operators = map[parser.ItemType]bool{
		parser.ADD: true, parser.SUB: true, parser.MUL: true, parser.DIV: true, parser.MOD: true,
		parser.POW: true, parser.ATAN2: true, parser.EQLC: true, parser.NEQ: true, parser.GTR: true,
		parser.LSS: true, parser.GTE: true, parser.LTE: true,
	}
)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// kebab makes the name of what is refused the reason.
func kebab(name string) string { return strings.ReplaceAll(name, "_", "-") }

func (p *prover) call(e *parser.Call) vector {
	name := e.Func.Name
	switch {
	case ownSeries[name]:
		return p.arguments(e)
	case histograms[name]:
		p.exclude(p.set("le"), "bucket-label")
		return p.arguments(e)
	case name == "label_replace", name == "label_join":
		return p.relabel(e)
	}
	return p.refuse(kebab(name))
}

// arguments checks each, and gives what is known of the one that has series.
func (p *prover) arguments(e *parser.Call) vector {
	var out vector
	seen := false
	for _, arg := range e.Args {
		switch arg.Type() {
		case parser.ValueTypeVector:
			out, seen = p.vector(arg), true
		case parser.ValueTypeMatrix:
			out, seen = p.matrix(arg), true
		case parser.ValueTypeScalar:
			p.scalar(arg)
		default:
			return p.refuse("unknown-expression")
		}
	}
	if !seen { // hour() and its like are one series without labels.
		return p.refuse(kebab(e.Func.Name))
	}
	return out
}

// relabel gives up the label that is written and those that are read: the
// grouped query has them where the single one may not.
func (p *prover) relabel(e *parser.Call) vector {
	var words []string
	for _, arg := range e.Args[1:] {
		s, ok := arg.(*parser.StringLiteral)
		if !ok {
			return p.refuse("unknown-expression")
		}
		words = append(words, s.Val)
	}
	p.exclude(p.set(words[0]), "label-changed")
	if e.Func.Name == "label_replace" {
		p.exclude(p.set(words[2]), "label-changed")
	} else {
		p.exclude(p.set(words[2:]...), "label-changed")
	}
	return vector{kept: p.vector(e.Args[0]).kept}
}
