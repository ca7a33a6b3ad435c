package approve_test

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// S11: a click approves what is before the eyes, or there is nothing to click.
func TestNoClick(t *testing.T) {
	param := func(v any) func(*approve.CardFacts) {
		return func(f *approve.CardFacts) { f.Ticket.Proposal.Parameters["version"] = v }
	}
	target := func(change func(*spec.Target)) func(*approve.CardFacts) {
		return func(f *approve.CardFacts) { change(&f.Service.Remediation.Actions[0].Target) }
	}
	cases := map[string]struct {
		change func(*approve.CardFacts)
		stale  bool // the digest is of what was before
		want   string
	}{
		"Plain":         {change: func(*approve.CardFacts) {}},
		"Quote":         {change: param(`v41" <!channel> & <https://evil|ok> *x* :tada:`)},
		"Backslash":     {change: param(`c:\new`)},
		"Numbers":       {change: param(0.1)},
		"Longest":       {change: param(strings.Repeat("v", approve.MaxExact-242))},
		"Bidi":          {change: param("v41\u202egnp.exe"), want: "parameter version holds U+202E"},
		"ZeroWidth":     {change: param("v4\u200b1"), want: "parameter version holds U+200B"},
		"ByteOrderMark": {change: param("\ufeffv41"), want: "parameter version holds U+FEFF"},
		"LookAlike":     {change: param("v41-\u0430lpha"), want: "parameter version holds U+0430"},
		"NoBreakSpace":  {change: param("v41\u00a0beta"), want: "parameter version holds U+00A0"},
		"Accent":        {change: param("café"), want: "parameter version holds U+00E9"},
		"Newline":       {change: param("v41\nv40"), want: "parameter version holds U+000A"},
		"Tab":           {change: param("v41\t"), want: "parameter version holds U+0009"},
		"Escape":        {change: param("v41\x1b[2J"), want: "parameter version holds U+001B"},
		"Delete":        {change: param("v41\x7f"), want: "parameter version holds U+007F"},
		"Invalid":       {change: param("v41\xff"), want: "cannot be written down"},
		"NotANumber":    {change: param(math.NaN()), want: "cannot be written down"},
		"TooLong":       {change: param(strings.Repeat("v", approve.MaxExact-241)), want: "is 2501 bytes long"},
		"TooHeavy":      {change: param(strings.Repeat("&", 700)), want: "does not fit here unshortened"},
		"ParameterName": {change: func(f *approve.CardFacts) {
			f.Ticket.Proposal.Parameters = propose.Parameters{"vers\u200bion": "v41"}
		}, want: "holds U+200B"},
		"TargetURL":   {change: target(func(t *spec.Target) { t.URL = "http://flags.internal/check\u2060out" }), want: "the target holds U+2060"},
		"StatusURL":   {change: target(func(t *spec.Target) { t.StatusURL = "http://fl\u0430gs.internal/" }), want: "the target holds U+0430"},
		"Program":     {change: target(func(t *spec.Target) { t.Argv = []string{"/bin/x", "a\u202eb"} }), want: "the target holds U+202E"},
		"ServiceName": {change: func(f *approve.CardFacts) { f.Ticket.Service = "check\u00adout" }, want: "the service holds U+00AD"},
		"OtherTarget": {change: target(func(t *spec.Target) { t.URL = "http://flags.internal/other" }), stale: true, want: "not what was asked for"},
		"OtherValue":  {change: param("v40"), stale: true, want: "not what was asked for"},
		"OtherKey":    {change: func(f *approve.CardFacts) { f.Ticket.Key = "checkout:1764418200-600" }, stale: true, want: "not what was asked for"},
		"NoAction":    {change: func(f *approve.CardFacts) { f.Service.Remediation.Actions = nil }, stale: true, want: "no document has an action rollback-flag of checkout"},
		"NoDocument":  {change: func(f *approve.CardFacts) { f.Service = spec.Service{Name: "checkout"} }, stale: true, want: "no document has an action"},
		"NoDigest":    {change: func(f *approve.CardFacts) { f.Ticket.Digest = "" }, stale: true, want: "not what was asked for"},
		"Storm":       {change: func(f *approve.CardFacts) { f.Storm = "9 of 20" }, want: "the storm brake is on"},
		"Overdue":     {change: func(f *approve.CardFacts) { f.Now = at(15 * time.Minute) }, want: "the time for an answer is over"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := cardFacts()
			tc.change(&f)
			if !tc.stale {
				f = redigested(f)
			}
			c := approve.RenderCard(f)
			if !strings.Contains(c.NoClick, tc.want) || (c.NoClick == "") != (tc.want == "") {
				t.Fatalf("no click %q, want %q", c.NoClick, tc.want)
			}
			if sum := sha256.Sum256([]byte(c.Exact)); c.NoClick == "" && hex.EncodeToString(sum[:]) != f.Ticket.Digest {
				t.Errorf("the digest is not of %s", c.Exact)
			}
			if passing := name == "Storm" || name == "Overdue"; (c.Exact != "") != (tc.want == "" || passing) {
				t.Errorf("exact is %q", c.Exact)
			}
			if c.NoClick != "" && name != "Overdue" && strings.Contains(c.Text(), "setpoint approve t7 --reason") {
				t.Error("the lead offers it all the same")
			}
		})
	}
}

// S11, INV-26: whatever the service, its documents and the proposal, what is shown
// as exact is the bytes of the digest, in characters that everybody tells apart.
func TestExactIsTheDigest(t *testing.T) {
	shownExact := 0
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[ -~]{0,40}`), rapid.String(), rapid.SampledFrom(hostile))
		f := cardFacts()
		a := &f.Service.Remediation.Actions[0]
		a.Target.URL, a.Target.Argv = text.Draw(t, "url"), rapid.SliceOfN(text, 0, 2).Draw(t, "argv")
		f.Ticket.Proposal.Parameters = rapid.MapOfN(text, rapid.OneOf(rapid.Map(text, func(s string) any { return s }),
			rapid.Map(rapid.Int64(), func(i int64) any { return i }), rapid.Map(rapid.Float64(), func(x float64) any { return x })), 0, 3).Draw(t, "parameters")
		if rapid.IntRange(0, 4).Draw(t, "fresh") > 0 {
			f = redigested(f)
		} else {
			f.Ticket.Digest = rapid.StringMatching(`[0-9a-f]{64}`).Draw(t, "digest")
		}
		c := approve.RenderCard(f)
		if (c.Exact == "") == (c.NoClick == "") {
			t.Fatalf("exact %q, no click %q", c.Exact, c.NoClick)
		}
		if c.Exact == "" {
			return
		}
		shownExact++
		want, err := gate.Canonical(f.Ticket.Service, f.Ticket.Key, *a, f.Ticket.Proposal.Parameters)
		sum := sha256.Sum256([]byte(c.Exact))
		if err != nil || c.Exact != string(want) || hex.EncodeToString(sum[:]) != c.Digest || c.Digest != f.Ticket.Digest {
			t.Fatalf("shown %s\nwant %s (%v), digest %s", c.Exact, want, err, c.Digest)
		}
		if i := strings.IndexFunc(c.Exact, func(r rune) bool { return r < ' ' || r > '~' }); i >= 0 || len(c.Exact) > approve.MaxExact {
			t.Fatalf("%d bytes, odd at %d: %q", len(c.Exact), i, c.Exact)
		}
	})
	if shownExact < 5 {
		t.Errorf("only %d were shown at all", shownExact)
	}
}

// hostile are texts of strangers: what hides, turns round, mentions, links, formats
// or ends a quotation.
var hostile = []string{
	"<!channel> <!here> <!everyone> @channel @here", "<@U1> <@U1|boss> <#C1> <!subteam^S1>", "<https://evil.example|setpoint.internal>",
	"[click](https://evil.example)", "[click]\u200b(https://evil.example)", "<\u200b!channel>", "<!date^1392734382^{date}^https://evil.example|x>",
	"*bold* _it_ ~no~ `code` ```block```", "```\n<!channel>\n```", "&lt;!channel&gt; &amp;lt;", ":tada: :skin-tone-2:",
	"\u202eevorppa\u202c", "\u2066\u2067\u2068\u2069\u200e\u200f\u061c", "\ufeff\u200b\u200c\u200d\u2060\u00ad", "\U000e0041\U000e0042", "\u3164\uffa0\u2800",
	"line one\nline two\r\nApprove below", "\u2028\u2029\x85", "“quoted” ”", "\x00\x07\x1b[31mred", "а\u0430pprove", "I\u0301\u0301\u0301\u0301",
	"https://evil.example/approve mailto:a@b.example", "\\<!channel\\>", strings.Repeat("A", 5000), strings.Repeat("😀", 400), "",
}

// What strangers wrote is shown as words, and as nothing else, wherever it stands.
func TestStrangersWords(t *testing.T) {
	for _, words := range hostile {
		f := sentFacts()
		f.Ticket.Proposal.Rationale, f.Course.Detail, f.Ticket.Proposal.Proposer.Model = words, words, words
		f.Ticket.Reasons[0].Text, f.Ticket.Answers[0].Reason, f.Ticket.Service = words, words, words
		f.Assessment.Objectives[0].ID, f.Assessment.Objectives[0].Group, f.Storm = words, words, words
		c := approve.RenderCard(f)
		texts := append(strings.Split(c.Text(), "\n"), c.Title, c.Words)
		for _, n := range c.Notes {
			texts = append(texts, n.Text)
		}
		for _, s := range texts {
			if strings.ContainsAny(s, "<>`") || strings.Contains(s, "](") || s != strings.TrimLeft(propose.CleanText(s, 1e6), " ") && s != "  "+propose.CleanText(s, 1e6) {
				t.Errorf("%q became %q", words, s)
			}
		}
		if n := len([]rune(c.Words)); n > 300 {
			t.Errorf("%q: %d characters of words", words, n)
		}
		if strings.Count(c.Words, "“")+strings.Count(c.Words, "”") > 2 {
			t.Errorf("the quotation %q ends early", c.Words)
		}
	}
}
