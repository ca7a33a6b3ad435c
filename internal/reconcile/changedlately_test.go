package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/policies"
)

// Whoever is asked because of a deploy reads which one, whoever reported it; a
// page of a service that nobody changed has no such section.
func TestPageNamesTheChange(t *testing.T) {
	shipped, err := rego.Load(policies.FS, rego.Options{Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason               string
		posted, file, listed bool
		want                 []string
	}{
		"Posted":  {reason: "a pipeline posted it", posted: true, want: []string{"“deploy v42”"}},
		"File":    {reason: "a file has it", file: true, want: []string{"“deploy v43”"}},
		"Listed":  {reason: "the target says so itself", listed: true, want: []string{"“deploy v44”"}},
		"All":     {reason: "each is told, the newest first", posted: true, file: true, listed: true, want: []string{"“deploy v44”", "“deploy v43”", "“deploy v42”"}},
		"Nothing": {reason: "nobody changed anything"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := prepare(t)
			if !tc.posted && !tc.file && !tc.listed {
				w.set.Services[0].Remediation.Actions = nil // Somebody is paged all the same.
			}
			var file, listed []measure.Change
			reads := 0
			w.options = func(o *reconcile.Options) {
				o.Policy = shipped
				o.Feed = feed(func(string) []measure.Change { reads++; return file })
				o.Executors["webhook"] = rolling{o.Executors["webhook"], func() []measure.Change { return listed }}
			}
			w.start()
			w.healthy()
			if reads != 0 {
				t.Errorf("the file was read %d times for a service that is met", reads)
			}
			if tc.file {
				file = []measure.Change{w.deployed("checkout", "v43", 4*time.Minute)}
			}
			if tc.listed {
				listed = []measure.Change{w.deployed("", "v44", 3*time.Minute)}
			}
			if tc.posted {
				if _, err := w.r.Change(t.Context(), []measure.Change{w.deployed("checkout", "v42", 5*time.Minute)}, "token:ci"); err != nil {
					t.Fatal(err)
				}
			}
			w.breakNow(0.3)
			w.until("page", 30*time.Minute, func(reconcile.Result) bool { return len(w.pager.open()) > 0 })
			w.run(2 * time.Minute) // It is told the same while it waits.
			for _, page := range w.pager.open() {
				_, told, found := strings.Cut(page.Text, "Changed lately\n")
				told, _, _ = strings.Cut(told, "\nWhy Setpoint stopped")
				var got []string
				for line := range strings.Lines(told) {
					words, _, _ := strings.Cut(strings.TrimSpace(line), " at ")
					got = append(got, words)
				}
				if !found {
					got = nil
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s\n%s", tc.reason, diff, page.Text)
				}
			}
		})
	}
}

// What keeps a model from answering is counted by its reason also where rules
// answer in its place; and all of it begins at zero, so that the first is seen
// as an increase.
func TestFallbacksAreCounted(t *testing.T) {
	w, f := farWorld(t, true, fails("timeout: endpoint main: no answer"))
	w.cfg.Proposer.Endpoints = []config.Endpoint{{Name: "main"}, {Name: "second"}}
	w.cfg.Proposer.Limits = config.ProposerLimits{CallsPerHour: 1}
	w.start()
	const fallbacks, requests = "setpoint_model_fallbacks_total", "setpoint_model_requests_total"
	for _, code := range propose.FaultCodes() {
		for name, labels := range map[string]string{fallbacks: "reason=" + code, requests: "endpoint=second result=" + code} {
			got, begun := gathered(t, f.reg, name)[labels]
			if want := name == requests || propose.NoModel(code); begun != want || got.value != 0 {
				t.Errorf("%s{%s} begins: %t at %g, want %t at 0", name, labels, begun, got.value, want)
			}
		}
	}
	if _, begun := gathered(t, f.reg, requests)["endpoint=openai result=limit"]; !begun {
		t.Error("a limit that is used up begins at one")
	}
	w.healthy()
	w.breakNow(0.3)
	w.until("second proposal", 40*time.Minute, func(reconcile.Result) bool { return len(w.proposals()) == 2 })
	got := gathered(t, f.reg, fallbacks)
	if got["reason=timeout"].value != 1 || got["reason=limit"].value != 1 {
		t.Errorf("a timeout and a limit were fallen back on: %v", got)
	}
}
