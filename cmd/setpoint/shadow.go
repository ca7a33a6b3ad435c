package main

import (
	"fmt"

	"github.com/setpoint-dev/setpoint/internal/web"
)

// shadowCells are what a shadow policy would have said, and why.
func shadowCells(d web.Decision) []string {
	s := d.Shadow
	switch {
	case s == nil:
		return []string{"", ""}
	case s.Fault != "":
		return []string{"fault", s.Fault}
	case !s.Differs:
		return []string{"same", words(s.Reasons)}
	}
	return []string{otherVerdict(d), words(s.Reasons)}
}

// otherVerdict tells in which way a shadow differs.
func otherVerdict(d web.Decision) string {
	switch s := d.Shadow; {
	case s.Hold:
		return s.Verdict + ", held"
	case s.Verdict == d.Verdict && !d.Hold:
		return s.Verdict + ", other approvals"
	default:
		return s.Verdict
	}
}

// shadow says what the shadow policy of a decision would have said, where there
// was one.
func (p *paper) shadow(d web.Decision) {
	s := d.Shadow
	switch {
	case s == nil:
	case s.Fault != "":
		p.line("  shadow policy %s could not rule: %s", short(s.Revision), s.Fault)
	case !s.Differs:
		p.line("  shadow policy %s would have said the same%s", short(s.Revision), parenthesised(s.Reasons))
	default:
		p.line("  shadow policy %s would have said %s%s", short(s.Revision), otherVerdict(d), parenthesised(s.Reasons))
	}
}

func parenthesised(codes []string) string {
	if len(codes) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s)", words(codes))
}
