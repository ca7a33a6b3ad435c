package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, in, want string }{
		"Plain":   {"Text stays text.", "p99 is 2.3 s\nand \"rising\" é 🔥\n", "p99 is 2.3 s\nand \"rising\" é 🔥\n"},
		"Escape":  {"A terminal is not driven.", "a\x1b[2J\x07\r\x7f\u0085b", `a\x1b[2J\a\r\x7f\u0085b`},
		"Bidi":    {"Nothing turns text around.", "v42\u202e24v\u2066", `v42\u202e24v\u2066`},
		"Hidden":  {"Nothing hides.", "a\u200b\ufeff\U000e0041\ufe0f\u2028b", `a\u200b\ufeff\U000e0041\ufe0f\u2028b`},
		"Tab":     {"A tab moves the cursor.", "a\tb", `a\tb`},
		"Invalid": {"What is no text shows as bytes.", "a\xff\xc3", `a\xff\xc3`},
		"Quote":   {"A quote needs no escape.", "it's", "it's"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := visible(tc.in); got != tc.want {
				t.Errorf("%s\nvisible(%q) = %q, want %q", tc.reason, tc.in, got, tc.want)
			}
		})
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("\x1b]0;title\x07\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		if got := visible(s); strings.ContainsFunc(got, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("visible(%q) = %q", s, got)
		}
	})
}

// TestRecordedBytesDriveNoTerminal: a reply is shown whole, and obeyed by
// nothing; as JSON it is what it was.
func TestRecordedBytesDriveNoTerminal(t *testing.T) {
	t.Parallel()
	const reply = "{\"x\":\"\u202e\x1b[2J\"}"
	r := promptRecord{
		Service: "checkout", Window: "1-600",
		Proposal:  propose.Malformed(propose.Proposer{}, propose.FaultMalformed, "unknown key \x1b[31m"),
		Exchanges: []promptExchange{{Exchange: ledger.Exchange{Endpoint: "main", Model: "m\x1b[0m", Repair: true, Result: "malformed"}, Reply: reply, Missing: true}},
	}
	var table, text bytes.Buffer
	if err := (&app{out: &table}).showRecord(r, formatTable); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(table.String(), "\x1b\u202e") || !strings.Contains(table.String(), `{"x":"\u202e\x1b[2J"}`) {
		t.Errorf("the table is %q", table.String())
	}
	for _, want := range []string{"1. repair turn to main", "no longer has all of its bytes", "unknown key"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("it lacks %q: %q", want, table.String())
		}
	}
	if err := (&app{out: &text}).showRecord(r, formatJSON); err != nil {
		t.Fatal(err)
	}
	var back struct{ Exchanges []struct{ Reply string } }
	if err := json.Unmarshal(text.Bytes(), &back); err != nil || len(back.Exchanges) != 1 || back.Exchanges[0].Reply != reply {
		t.Errorf("as JSON the reply is %+v (%v)", back, err)
	}
}
