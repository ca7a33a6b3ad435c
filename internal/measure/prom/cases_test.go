package prom_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestPublicCases replays the answers of real servers.
func TestPublicCases(t *testing.T) {
	type response struct {
		Status     int
		Headers    map[string]string
		Body       string
		BodyBase64 string `json:"body_base64"`
	}
	type replay struct {
		ID, Source string
		Response   response
		Sequence   []struct{ Response response }
	}
	want := map[string][]string{
		"P01-infos-field":                   {"0.0123"},
		"P03-vm-ispartial":                  {"partial"},
		"P05-nan-no-traffic":                {"not-finite"},
		"P07-empty-vector":                  {"no-data"},
		"P09-scalar-result":                 {"0.0007"},
		"P11-422-duplicate-match-group":     {"query-error"},
		"P12-503-timeout":                   {"source-error"},
		"P15-502-html":                      {"source-error"},
		"P17-gzip-without-header":           {"source-error"},
		"P20-float-timestamps":              {"6.1e-05", "0"},
		"P22-flapping-recorded-series":      {"0.9991", "0.42", "0.9991"},
		"P23-error-type-is-a-number-string": {"source-error", "source-error"},
		"P25-truncated-by-limit-warning":    {"partial"},
	}
	files, err := filepath.Glob("testdata/promapi/*.json")
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d files, want %d (%v)", len(files), len(want), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c replay
		if err := json.Unmarshal(b, &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.ID, func(t *testing.T) {
			steps := []response{c.Response}
			for _, s := range c.Sequence {
				steps = append(steps, s.Response)
			}
			if len(c.Sequence) > 0 {
				steps = steps[1:]
			}
			var got []string
			for _, r := range steps {
				body := []byte(r.Body)
				if r.BodyBase64 != "" {
					if body, err = base64.StdEncoding.DecodeString(r.BodyBase64); err != nil {
						t.Fatal(err)
					}
				}
				s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					if req.FormValue("query") == "newest" {
						ts := req.FormValue("time")
						fmt.Fprintf(w, `{"status":"success","data":{"resultType":"scalar","result":[%s,%q]}}`, ts, ts)
						return
					}
					for k, v := range r.Headers {
						w.Header().Set(k, v)
					}
					w.WriteHeader(r.Status)
					_, _ = w.Write(body)
				}))
				q := query()
				q.Good, q.Total, q.Raw = "", "", "raw"
				q.ID.At = instantOf(string(body))
				m := one(t, s, q)
				t.Logf("%s: %+v", c.Source, m)
				if m.Known() {
					got = append(got, strconv.FormatFloat(m.ErrorRatio, 'g', -1, 64))
				} else {
					got = append(got, string(m.Reason))
				}
				if strings.ContainsAny(m.Detail, "\x1f<\n") {
					t.Errorf("detail %q holds bytes of the body", m.Detail)
				}
				if c.ID == "P01-infos-field" && len(m.Notes) != 1 {
					t.Errorf("notes %q, want the info", m.Notes)
				}
			}
			if diff := cmp.Diff(want[c.ID], got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.Source, diff)
			}
		})
	}
}

// instantOf finds the instant for which a recorded body answers.
func instantOf(body string) time.Time {
	_, rest, ok := strings.Cut(body, "[17644")
	if !ok {
		return time.Unix(1764400000, 0).UTC()
	}
	number, _, _ := strings.Cut("17644"+rest, ",")
	f, _ := strconv.ParseFloat(number, 64)
	return time.UnixMilli(int64(f * 1000)).UTC()
}
