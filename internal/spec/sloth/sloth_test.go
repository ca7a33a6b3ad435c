package sloth_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/sloth"
)

const day = 24 * time.Hour

func readers(period time.Duration) []spec.Reader {
	return []spec.Reader{sloth.File{Window: period}, sloth.Resource{Window: period}}
}

func read(t testing.TB, path string) spec.File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return spec.File{Name: filepath.Base(path), Data: data}
}

// TestValid: both forms say the same, whatever the keys are called.
func TestValid(t *testing.T) {
	cases := map[string]struct {
		reason string
		reader spec.Reader
		window time.Duration
		// first is the line of the first SLO, query that of its first query.
		service, first, query int
		notes                 []spec.Note
	}{
		"valid-file": {
			reason: "Sloth's own form, with the period that Sloth has when it is told none.",
			reader: sloth.File{}, window: 30 * day, service: 3, first: 9, query: 20,
			notes: []spec.Note{note(5, chainText), note(13, pluginText), note(2, alertText)},
		},
		"valid-resource": {
			reason: "The resource, with the period that somebody told Sloth.",
			reader: sloth.Resource{Window: 28 * day}, window: 28 * day, service: 15, first: 21, query: 32,
			notes: []spec.Note{note(17, chainText), note(25, pluginText), note(2, alertText)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := spec.Read([]spec.File{read(t, "testdata/"+name+".yaml")}, []spec.Reader{tc.reader})
			if err != nil {
				t.Fatal(err)
			}
			at := func(line int) spec.Position { return spec.Position{File: name + ".yaml", Line: line} }
			want := []spec.ObjectiveReading{{
				Service: "checkout", ServicePos: at(tc.service), Labels: map[string]string{"owner": "team-a", "tier": "1"},
				Objective: spec.Objective{
					ID: "requests-availability", SLO: "requests-availability", Description: "Requests are answered.",
					Target: 0.999, Window: tc.window, Pos: at(tc.first),
					Indicator: spec.Indicator{
						Bad:           &spec.Query{Expr: `sum(rate(http_requests_total{job="checkout",code=~"(5..|429)"}[{{.window}}]))`, Pos: at(tc.query)},
						Total:         &spec.Query{Expr: `sum(rate(http_requests_total{job="checkout"}[{{ .window }}]))`, Pos: at(tc.query + 1)},
						AbsentBadZero: true,
					},
				},
			}, {
				Service: "checkout", ServicePos: at(tc.service), Labels: map[string]string{"owner": "team-a", "tier": "2"},
				Objective: spec.Objective{
					ID: "link", SLO: "link", Target: 0.95, Window: tc.window, Pos: at(tc.query + 9),
					Indicator: spec.Indicator{
						Raw: &spec.Query{Expr: `1 - avg(avg_over_time(link_up{job="checkout"}[{{.window}}]))`, Pos: at(tc.query + 13)},
					},
				},
			}}
			if len(got) != 1 || got[0].APIVersion != tc.reader.APIVersion() {
				t.Fatalf("%s readings %+v", tc.reason, got)
			}
			if diff := cmp.Diff(want, got[0].Objectives, cmpopts.IgnoreFields(spec.ObjectiveReading{}, "Digests")); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
			for i := range tc.notes {
				tc.notes[i].Pos.File = name + ".yaml"
			}
			if diff := cmp.Diff(tc.notes, got[0].Notes); diff != "" {
				t.Errorf("%s notes (-want, +got)\n%s", tc.reason, diff)
			}
		})
	}
}

const (
	chainText = `service "checkout": the plugins sloth.dev/core/debug/v1 are not run: ` +
		`the queries are measured as they are written, so the number may differ from what Sloth computes`
	pluginText = `SLO "requests-availability": the plugins sloth.dev/contrib/info_labels/v1, team.example/own/v1 are not run: ` +
		`the queries are measured as they are written, so the number may differ from what Sloth computes`
	alertText = `service "checkout": alerting of 1 SLO is not used: pages are the Remediation's`
)

func note(line int, text string) spec.Note {
	lint := ""
	if strings.Contains(text, "plugins") {
		lint = sloth.PluginChain
	}
	return spec.Note{Pos: spec.Position{Line: line}, Text: text, Lint: lint}
}

// TestObjective: 99.9 percent is exactly the number 0.999, because the digits
// that a person wrote are compared and shown.
func TestObjective(t *testing.T) {
	text := string(read(t, "testdata/valid-file.yaml").Data)
	rapid.Check(t, func(t *rapid.T) {
		thousandths := rapid.IntRange(1000, 99_999).Draw(t, "percent x 1000")
		percent := float64(thousandths) / 1000
		file := strings.Replace(text, "99.9", spelled(percent), 1)
		got, err := spec.Read([]spec.File{{Name: "a", Data: []byte(file)}}, readers(0))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := got[0].Objectives[0].Objective.Target, float64(thousandths)/100_000; got != want {
			t.Fatalf("%v%% is %v, want %v", percent, got, want)
		}
	})
}
