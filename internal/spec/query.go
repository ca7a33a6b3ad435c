package spec

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// windowMark is the placeholder that Sloth introduced and everybody knows.
var (
	windowMark  = regexp.MustCompile(`\{\{\s*\.window\s*\}\}`)
	anyMark     = regexp.MustCompile(`\{\{[^{}]*\}\}`)
	dashboard   = regexp.MustCompile(`\$\{?[A-Za-z_]\w*\}?|\[\[\w+\]\]`)
	probeWindow = 7919 * time.Second
)

// Query is PromQL as the document has it, with the source it is sent to.
type Query struct {
	// Expr holds {{.window}}, or is a plain selector when Counter is set.
	Expr string
	// Counter: Expr is a plain selector that is wrapped as
	// sum(increase(Expr[window])).
	Counter bool
	// Recorded: Expr is an instant selector of ratios that somebody records,
	// whose metric name holds {{.window}}, e.g. slo:sli_error:ratio_rate{{.window}}.
	Recorded bool
	// Source names an entry of setpoint.yaml's sources; "" is the first.
	Source string
	Pos    Position
}

// At returns the PromQL for one window.
func (q Query) At(window time.Duration) string {
	w := FormatDuration(window)
	if q.Counter {
		return "sum(increase(" + strings.TrimSpace(q.Expr) + "[" + w + "]))"
	}
	return windowMark.ReplaceAllLiteralString(q.Expr, w)
}

// HasWindow reports whether {{.window}} stands in the query. Then it says the
// range itself, and Counter has no meaning.
func (q Query) HasWindow() bool { return windowMark.MatchString(q.Expr) }

// Selectors returns the plain selectors of the query as PromQL, each once and
// sorted: without the range, with the offset. The newest of their samples is
// the sample time of the query. Where the window stands outside of a range, in
// the name of a recorded series, they are those of DefaultJudgeWindow.
func (q Query) Selectors() ([]string, error) {
	return q.SelectorsAt(DefaultJudgeWindow)
}

// SelectorsAt returns the selectors of the query as it is asked over a window.
func (q Query) SelectorsAt(window time.Duration) ([]string, error) {
	expr, err := parse(q.At(window))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, vs := range vectorSelectors(expr) {
		if vs.BypassEmptyMatcherCheck {
			continue // The second argument of info() names labels, not samples.
		}
		plain := parser.VectorSelector{
			Name: vs.Name, LabelMatchers: vs.LabelMatchers,
			OriginalOffset: vs.OriginalOffset, OriginalOffsetExpr: vs.OriginalOffsetExpr,
		}
		found = append(found, plain.String())
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// Check returns what keeps the query from being measured over any window.
func (q Query) Check() error {
	switch {
	case q.Recorded:
		return q.checkRecorded()
	case q.Counter:
		return q.checkCounter()
	}
	if !q.HasWindow() {
		return errors.New("has no {{.window}}: write the range as [{{.window}}], " +
			"or give a plain selector and counter: true")
	}
	expr, err := q.checkExpr()
	if err != nil {
		return err
	}
	if !usesWindow(expr) {
		return errors.New("has {{.window}}, but not as a range: write it as [{{.window}}]")
	}
	return nil
}

// CheckInstant returns what keeps the query from being asked at an instant,
// where a window is not needed (evidence).
func (q Query) CheckInstant() error {
	_, err := q.checkExpr()
	return err
}

func (q Query) checkCounter() error {
	expr, err := parse(q.Expr)
	if err != nil {
		return err
	}
	vs, ok := expr.(*parser.VectorSelector)
	if !ok || !isPlain(vs) {
		return errors.New("is no plain selector, which counter: true needs to wrap it as sum(increase(…[window])): " +
			"give the bare metric with its labels, or write the range as [{{.window}}]")
	}
	if _, err := parse(q.At(probeWindow)); err != nil {
		return errors.New("ends in a comment, which would hide what counter: true wraps around it: remove the comment")
	}
	return checkMatchers(vs.LabelMatchers)
}

// checkRecorded wants one instant selector whose metric name, and nothing else,
// holds the window.
func (q Query) checkRecorded() error {
	expr, err := q.checkExpr()
	if err != nil {
		return err
	}
	vs, ok := expr.(*parser.VectorSelector)
	if !ok || !isPlain(vs) {
		return errors.New("is no plain selector of recorded ratios: give the bare metric with its labels")
	}
	if !strings.Contains(vs.Name, FormatDuration(probeWindow)) || len(windowMark.FindAllString(q.Expr, 2)) != 1 {
		return errors.New("has no {{.window}} in its metric name: write it as ratio_rate{{.window}}, and nowhere else")
	}
	return nil
}

func (q Query) checkExpr() (parser.Expr, error) {
	for _, mark := range anyMark.FindAllString(q.Expr, -1) {
		if !windowMark.MatchString(mark) {
			return nil, fmt.Errorf("has the placeholder %s, which nothing replaces: only {{.window}} is", shorten(mark))
		}
	}
	expr, err := parse(q.At(probeWindow))
	if err != nil {
		return nil, err
	}
	if t := expr.Type(); t != parser.ValueTypeVector {
		return nil, fmt.Errorf("gives a %s, want an instant vector", parser.DocumentedType(t))
	}
	selectors := vectorSelectors(expr)
	if len(selectors) == 0 {
		return nil, errors.New("selects no series, so its age cannot be known")
	}
	for _, vs := range selectors {
		if vs.Timestamp != nil || vs.StartOrEnd != 0 {
			return nil, errors.New("fixes its time with @, so it does not measure the present: remove the modifier")
		}
		if err := checkMatchers(vs.LabelMatchers); err != nil {
			return nil, err
		}
	}
	return expr, nil
}

// checkMatchers refuses a dashboard's variable that was left in a label: it
// selects nothing, for ever, and would look like no data.
func checkMatchers(ms []*labels.Matcher) error {
	for _, m := range ms {
		if v := dashboard.FindString(m.Value); v != "" {
			return fmt.Errorf("has the dashboard variable %s in label %s: put its value there", shorten(v), m.Name)
		}
	}
	return nil
}

func parse(expr string) (parser.Expr, error) {
	p := parser.NewParser(parser.Options{EnableExperimentalFunctions: true, EnableBinopFillModifiers: true})
	e, err := p.ParseExpr(expr)
	if err != nil {
		return nil, fmt.Errorf("is not valid PromQL: %w", err)
	}
	return e, nil
}

func vectorSelectors(expr parser.Expr) []*parser.VectorSelector {
	var found []*parser.VectorSelector
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if vs, ok := n.(*parser.VectorSelector); ok {
			found = append(found, vs)
		}
		return nil
	})
	return found
}

func usesWindow(expr parser.Expr) bool {
	used := false
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.MatrixSelector:
			used = used || n.Range == probeWindow || n.RangeExpr != nil
		case *parser.SubqueryExpr:
			used = used || n.Range == probeWindow || n.RangeExpr != nil
		}
		return nil
	})
	return used
}
