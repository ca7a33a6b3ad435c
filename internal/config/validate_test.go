package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

const validConfig = `
sources: [{name: main, url: "http://127.0.0.1:9090"}, {name: probe, url: "http://127.0.0.1:9091"}]
receivers: [{name: oncall, alertmanager: {url: "http://127.0.0.1:9093"}}]
approvers: {"@oncall": ["os:alice"]}
executors: {webhook: {allow: ["http://scaler.internal/shop"]}}
secrets: {scaler: scaler.key}
`

// document is one service with one action; the parts that a test changes are
// on lines of their own.
const document = `
apiVersion: openslo/v1
kind: SLO
metadata: {name: shop}
spec:
  service: shop
  indicator:
    spec:
      ratioMetric:
        counter: true
        bad: {metricSource: {metricSourceRef: <SOURCE>, spec: {query: failures_total}}}
        total: {metricSource: {metricSourceRef: <SOURCE>, spec: {query: requests_total}}}
  timeWindow: [{duration: 30d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.99}]
---
apiVersion: setpoint.dev/v1alpha1
kind: Remediation
metadata: {name: shop}
spec:
  service: shop
  mode: approval
  approvers: [<APPROVER>]
  actions:
    - name: scale
      uses: webhook.post
      class: approval
      reversal: transient
      target:
        secret: <SECRET>
        url: <URL>
        statusURL: <STATUS>
  escalation:
    receivers: [<RECEIVER>]
    ownerReceivers: [<OWNER>]
`

// vantages is a line for the end of document.
const vantages = "  objectives: {shop: {sources: [<FIRST>, <SECOND>]}}\n" +
	"  evidence: [{name: plain, query: up}, {name: elsewhere, query: up, source: <EVIDENCE>}]\n"

func TestValidate(t *testing.T) {
	const allowed = "http://scaler.internal/shop/scale"
	cases := map[string]struct {
		reason string
		words  map[string]string
		want   string
	}{
		"Valid":    {reason: "Every name resolves."},
		"Source":   {"The first vantage point is no source.", map[string]string{"FIRST": "man"}, `slo.yaml:36: spec.objectives.shop.sources[0]: objective "shop" is measured at "man", which is no source in setpoint.yaml, did you mean "main"?`},
		"Vantage":  {"A vantage point is named by the Remediation, and so is its fault.", map[string]string{"SECOND": "prob"}, `slo.yaml:36: spec.objectives.shop.sources[1]: objective "shop" is measured at "prob", which is no source in setpoint.yaml, did you mean "probe"?`},
		"Evidence": {"Evidence names a source of its own.", map[string]string{"EVIDENCE": "prob"}, `slo.yaml:37: spec.evidence[1].source: there is no source "prob" in setpoint.yaml, did you mean "probe"?`},
		"Approver": {"An approver is no group.", map[string]string{"APPROVER": `"@onkall"`}, `slo.yaml:23: spec.approvers[0]: there is no group "@onkall" in setpoint.yaml under approvers, did you mean "@oncall"?`},
		"Person":   {"A principal needs no group.", map[string]string{"APPROVER": `"os:bob"`}, ""},
		"Secret":   {"A secret is not named there.", map[string]string{"SECRET": "scalar"}, `slo.yaml:30: spec.actions[0].target.secret: there is no secret "scalar" in setpoint.yaml: add it under secrets, with its file`},
		"URL":      {"The URL is elsewhere.", map[string]string{"URL": `"http://evil.example/shop"`}, "slo.yaml:31: spec.actions[0].target.url: http://evil.example/shop is not below any URL of executors.webhook.allow in setpoint.yaml"},
		"Status":   {"The statusURL is elsewhere: it is asked, and it is answered to.", map[string]string{"STATUS": `"http://scaler.internal/shopping"`}, "slo.yaml:32: spec.actions[0].target.statusURL: http://scaler.internal/shopping is not below any URL of executors.webhook.allow in setpoint.yaml"},
		"Receiver": {"A receiver is not there.", map[string]string{"RECEIVER": "pager"}, `slo.yaml:34: spec.escalation.receivers[0]: there is no receiver "pager" in setpoint.yaml, known are oncall`},
		"Owner":    {"An owner's receiver is not there.", map[string]string{"OWNER": "pager"}, `slo.yaml:35: spec.escalation.ownerReceivers[0]: there is no receiver "pager" in setpoint.yaml, known are oncall`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			words := map[string]string{
				"SOURCE": "main", "APPROVER": `"@oncall"`, "SECRET": "scaler", "RECEIVER": "oncall", "OWNER": "oncall",
				"URL": allowed, "STATUS": allowed, "FIRST": "main", "SECOND": "probe", "EVIDENCE": "probe",
			}
			for k, v := range tc.words {
				words[k] = v
			}
			set, err := spec.Load([]spec.File{{Name: "slo.yaml", Data: []byte(replace(document+vantages, words))}}, []spec.Reader{openslo.Reader{}})
			if err != nil {
				t.Fatal(err)
			}
			c, err := config.Parse(spec.File{Name: "setpoint.yaml", Data: []byte(validConfig)})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := c.Validate(set); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAllows(t *testing.T) {
	cases := map[string]struct {
		reason     string
		allow, url string
		want       bool
	}{
		"Same":             {"The entry itself.", "http://a.example/b", "http://a.example/b", true},
		"Below":            {"A whole segment further.", "http://a.example/b", "http://a.example/b/c?x=1", true},
		"Sibling":          {"Half a segment further is another place.", "http://a.example/b", "http://a.example/bc", false},
		"Slash":            {"An entry that ends with a slash is the folder's content.", "http://a.example/b/", "http://a.example/b/c", true},
		"SlashItself":      {"… and not its name.", "http://a.example/b/", "http://a.example/b", false},
		"Root":             {"The root holds everything of the host.", "http://a.example/", "http://a.example/b", true},
		"RootItself":       {"No path is sent as /.", "http://a.example/", "http://a.example", true},
		"Bare":             {"A host alone is its root.", "http://a.example", "http://a.example/b", true},
		"HostSuffix":       {"A longer host name is another host.", "http://a.example", "http://a.example.evil/b", false},
		"HostPrefix":       {"So is a shorter one.", "http://a.example/", "http://example/b", false},
		"HostCase":         {"Host names have no case.", "http://A.example/b", "http://a.EXAMPLE/b", true},
		"PathCase":         {"Paths have.", "http://a.example/b", "http://a.example/B", false},
		"DefaultPort":      {"The port that is meant is the same port.", "http://a.example:80/b", "http://a.example/b", true},
		"OtherPort":        {"Another port is another place.", "http://a.example/b", "http://a.example:81/b", false},
		"Scheme":           {"So is another scheme.", "https://a.example/b", "http://a.example/b", false},
		"User":             {"A user before the host hides the host.", "http://a.example/", "http://a.example@evil.example/", false},
		"Backslash":        {"Some read a backslash as the end of the host.", "http://a.example/", `http://a.example\@evil.example/`, false},
		"DotDot":           {"No way up.", "http://a.example/b", "http://a.example/b/../c", false},
		"EncodedDotDot":    {"No way up in disguise.", "http://a.example/b", "http://a.example/b/%2e%2e/c", false},
		"EncodedSlash":     {"No separator in disguise.", "http://a.example/b", "http://a.example/b%2f..%2fc", false},
		"EncodedBackslash": {"Nor this one.", "http://a.example/b", "http://a.example/b/%5c..%5cc", false},
		"DoubleSlash":      {"Some fold it, some do not.", "http://a.example/b", "http://a.example//b/c", false},
		"Fragment":         {"A fragment is never sent.", "http://a.example/b", "http://a.example/b#c", false},
		"Relative":         {"Nothing relative.", "http://a.example/b", "/b", false},
		"Nothing":          {"An empty list allows nothing.", "", "http://a.example/b", false},
		"IPv6":             {"Addresses work.", "http://[::1]:9901/b", "http://[::1]:9901/b/c", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := config.WebhookExecutor{}
			if tc.allow != "" {
				w.Allow = []string{tc.allow}
			}
			if got := w.Allows(tc.url); got != tc.want {
				t.Errorf("%s %s below %s: %t, want %t", tc.reason, tc.url, tc.allow, got, tc.want)
			}
		})
	}
}

// TestAllowedStaysThere checks that whatever is allowed keeps scheme, host and
// the path's beginning after it was cleaned as servers do.
func TestAllowedStaysThere(t *testing.T) {
	w := config.WebhookExecutor{Allow: []string{"http://a.example/b"}}
	rapid.Check(t, func(t *rapid.T) {
		raw := "http://a.example" + rapid.StringOf(rapid.SampledFrom([]rune("/.b%2ef5c\\@:?#A;"))).Draw(t, "rest")
		if !w.Allows(raw) {
			return
		}
		host, cleaned := served(t, raw)
		if host != "a.example" || !under(cleaned, "/b") {
			t.Fatalf("%q is allowed and goes to %s %s", raw, host, cleaned)
		}
	})
}
