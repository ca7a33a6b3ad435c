package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

type recorded struct {
	ID, What, Source, RightAnswer, Note string
	Response                            struct {
		Status  int
		Headers map[string]string
		Body    string
	}
	Want struct{ Kind, Fault string }
}

// right is the right answer to a recorded reply: what is sent, to whom, with
// what result, where a second endpoint would answer well; and what is kept when
// there is no second one.
type right struct {
	sent  []string
	fault string
	// words are the own ones of a model that declined.
	words string
	// valid is what the reply itself proposes; nil: nothing.
	valid *propose.Proposal
}

var (
	repaired = []string{"e1 malformed", "e1 repair malformed", "e2 ok"}
	longer   = []string{"e1 truncated", "e1 repair truncated", "e2 ok"}
	passedOn = func(code string) []string { return []string{"e1 " + code, "e2 ok"} }
)

var rightAnswers = map[string]right{
	"M01-fenced-json": {sent: []string{"e1 ok"}, valid: rollback("p99 rose from 0.3 s to 2.3 s right after v42")},
	"M02-prose-then-fence": {
		sent: repaired, fault: "malformed: endpoint e1: the reply is no proposal: not exactly one JSON object: invalid character 'H' looking for beginning of value",
	},
	"M04-backticks-inside-a-string": {sent: []string{"e1 ok"}, valid: rollback("log shows ```panic: nil map``` since v42")},
	"M05-trailing-comma": {
		sent: repaired, fault: "malformed: endpoint e1: the reply is no proposal: not exactly one JSON object: invalid character '}' looking for beginning of object key string",
	},
	"M08-truncated-length":      {sent: longer, fault: "truncated: endpoint e1: finish_reason length: the reply was cut off"},
	"M11-think-used-all-tokens": {sent: longer, fault: "truncated: endpoint e1: finish_reason length: the reply was cut off"},
	"M12-double-brace": {
		sent: repaired, fault: "malformed: endpoint e1: the reply is no proposal: not exactly one JSON object: invalid character '{' looking for beginning of object key string",
	},
	"M13-schema-silently-ignored": {
		sent: repaired, fault: "malformed: endpoint e1: the reply is no proposal: not exactly one JSON object: invalid character 'I' looking for beginning of value",
	},
	"M15-unknown-action": {
		sent: repaired, fault: `malformed: endpoint e1: unknown action "drain_node": use one of rollback, scale, restart, none, escalate`,
	},
	"M18-refusal-null-content":          {sent: []string{"e1 refusal"}, fault: "refusal: endpoint e1: the model declined", words: "I cannot help with that request."},
	"M20-content-filter-no-content-key": {sent: []string{"e1 content-filter"}, fault: "content-filter: endpoint e1: finish_reason content_filter: the provider withheld the reply"},
	"M22-empty-choices":                 {sent: passedOn("empty"), fault: "empty: endpoint e1: the completion has no choices"},
	"M24-choices-null":                  {sent: passedOn("empty"), fault: "empty: endpoint e1: the completion has no choices"},
	"M26-finish-tool-calls-but-none":    {sent: repaired, fault: `malformed: endpoint e1: finish_reason "tool_calls" is not stop`},
	"M29-control-characters": {
		sent: repaired, fault: `malformed: endpoint e1: the reply is no proposal: not exactly one JSON object: invalid character '\n' in string literal`,
	},
	"M30-sse-not-asked":   {sent: passedOn("provider-error"), fault: `provider-error: endpoint e1: content type "text/event-stream" where JSON was asked for`},
	"M31-429-retry-after": {sent: passedOn("rate-limited"), fault: "rate-limited: endpoint e1: status 429, the provider says: Rate limit reached for requests"},
	"M35-literal-backslash-n": {
		sent: repaired, fault: `malformed: endpoint e1: the reply is no proposal: not exactly one JSON object: invalid character '\\' looking for beginning of value`,
	},
}

func rollback(why string) *propose.Proposal {
	return &propose.Proposal{
		Kind: propose.KindAction, Action: "rollback", Parameters: propose.Parameters{"deployment": "checkout"}, Rationale: why,
		Proposer: propose.Proposer{Kind: "openai", Endpoint: "e1", Model: "some-model"},
	}
}

func loadCases(t testing.TB) []recorded {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "cases", "*.json"))
	if err != nil || len(files) != len(rightAnswers) {
		t.Fatalf("%d recorded replies for %d right answers, error %v", len(files), len(rightAnswers), err)
	}
	var out []recorded
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var rec recorded
		if err := json.Unmarshal(data, &rec); err != nil {
			t.Fatal(err)
		}
		out = append(out, rec)
	}
	return out
}

func (r recorded) handler(w http.ResponseWriter, _ *http.Request) {
	for k, v := range r.Response.Headers {
		w.Header().Set(k, v)
	}
	w.WriteHeader(r.Response.Status)
	_, _ = io.WriteString(w, r.Response.Body)
}

// sent names each request: whom, whether it was the repair turn, and its result.
func sent(xs []propose.Exchange) []string {
	var out []string
	for _, x := range xs {
		words := x.Endpoint
		if x.Repair {
			words += " repair"
		}
		out = append(out, words+" "+x.Result)
	}
	return out
}

// TestRecordedReplies replays what servers were reported to send.
func TestRecordedReplies(t *testing.T) {
	t.Parallel()
	for _, rec := range loadCases(t) {
		t.Run(rec.ID, func(t *testing.T) {
			t.Parallel()
			want, known := rightAnswers[rec.ID]
			if !known {
				t.Fatal("no right answer is written down")
			}
			url := server(t, rec.handler)

			p, u := client(t, options(t, url)).Propose(t.Context(), request())
			if want.valid != nil {
				if diff := cmp.Diff(*want.valid, p); diff != "" {
					t.Errorf("%s\nright answer: %s\n-want, +got:\n%s", rec.What, rec.RightAnswer, diff)
				}
			} else if diff := cmp.Diff(want.fault, p.Fault); diff != "" || p.Kind != propose.KindMalformed || p.Action != "" || len(p.Parameters) > 0 {
				t.Errorf("%s\nright answer: %s\ngot %+v\n%s", rec.What, rec.RightAnswer, p, diff)
			}
			if want.valid == nil && p.Rationale != want.words {
				t.Errorf("%s\nright answer: %s\nits own words are %q, want %q", rec.What, rec.RightAnswer, p.Rationale, want.words)
			}
			code, _, _ := strings.Cut(p.Fault, ":")
			if string(p.Kind) != rec.Want.Kind || code != rec.Want.Fault {
				t.Errorf("%s (%s)\nright answer: %s\ngot %+v", rec.What, rec.Source, rec.RightAnswer, p)
			}
			if diff := cmp.Diff(rec.Response.Body, string(u.Exchanges[0].Reply)); diff != "" {
				t.Errorf("the reply's bytes are not kept: -want, +got:\n%s", diff)
			}

			p, u = client(t, options(t, url, server(t, completion(good)))).Propose(t.Context(), request())
			if diff := cmp.Diff(want.sent, sent(u.Exchanges)); diff != "" {
				t.Errorf("%s\nright answer: %s\nrequests: -want, +got:\n%s", rec.What, rec.RightAnswer, diff)
			}
			if passed := strings.HasPrefix(want.sent[len(want.sent)-1], "e2"); passed != (p.Action == "restart") {
				t.Errorf("the second endpoint proposes a restart; got %+v", p)
			}
		})
	}
}
