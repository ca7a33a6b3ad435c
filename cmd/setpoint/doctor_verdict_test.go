package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate/alertmanager"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/seenfile"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// verdict is one case: what a check showed must give that result, with those
// words in detail and remedy.
type verdict struct {
	reason string
	got    checkItem
	result string
	words  []string
}

func checkVerdicts(t *testing.T, cases map[string]verdict) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.got.Result != tc.result {
				t.Errorf("%s: got %+v, want %s", tc.reason, tc.got, tc.result)
			}
			for _, w := range tc.words {
				if !strings.Contains(tc.got.Detail+" | "+tc.got.Remedy, w) {
					t.Errorf("%s: want %q in %+v", tc.reason, w, tc.got)
				}
			}
			checkRemedy(t, tc.got)
		})
	}
}

func ofSubject(name string) subject { return subject{"x/y", name} }

func TestSourceVerdicts(t *testing.T) {
	known := func(age time.Duration) reading {
		return reading{measure.Measurement{ErrorRatio: 0, Total: 10, HasEvents: true, SampleAt: time.Unix(1, 0)}, age, 90 * time.Second}
	}
	unknown := func(r measure.Reason) reading {
		return reading{measure.Measurement{Reason: r, Detail: "so it is"}, 0, 90 * time.Second}
	}
	answers := func(text string) checkItem {
		return (&sourceSeen{src: config.Source{Name: "main"}, at: liveSource{Error: text}}).answers()
	}
	checkVerdicts(t, map[string]verdict{
		"right clock":  {"half a second is the network", clockVerdict(ofSubject("main"), 500*time.Millisecond), resultOK, []string{"+0.500s"}},
		"drifting":     {"told before it holds everything", clockVerdict(ofSubject("main"), -3*time.Second), resultWarn, []string{"-3.000s", "NTP"}},
		"at the limit": {"5 s hold nothing yet", clockVerdict(ofSubject("main"), 5*time.Second), resultWarn, nil},
		"apart":        {"more than 5 s hold everything", clockVerdict(ofSubject("main"), 10*time.Minute), resultFail, []string{"+600.000s", "timedatectl"}},
		"kept":         {"as long as the window is enough", retentionVerdict(ofSubject("main"), 24*time.Hour, 24*time.Hour), resultOK, nil},
		"not kept":     {"its value would be another window's", retentionVerdict(ofSubject("main"), 15*24*time.Hour, 30*24*time.Hour), resultFail, []string{"15d", "30d", "retention.time"}},
		"kept for nobody": {
			"a source that no objective asks", retentionVerdict(ofSubject("main"), time.Hour, 0), resultOK, []string{"no objective"},
		},
		"fresh":           {"within the limit", freshVerdict(ofSubject("main"), "a/b", known(90*time.Second)), resultOK, []string{"a/b is 1m30s old"}},
		"stale":           {"unknown while it is so", freshVerdict(ofSubject("main"), "a/b", known(91*time.Second)), resultFail, []string{"maxSampleAge"}},
		"future":          {"a sample from the future", freshVerdict(ofSubject("main"), "a/b", known(-time.Minute)), resultFail, []string{"in the future"}},
		"nothing there":   {"perhaps there is no traffic", freshVerdict(ofSubject("main"), "a/b", unknown(measure.NoData)), resultWarn, []string{"no-data"}},
		"source broke":    {"the source's own fault", freshVerdict(ofSubject("main"), "a/b", unknown(measure.Partial)), resultFail, []string{"partial"}},
		"idle":            {"far below", loadVerdict(ofSubject("main"), 1, 20), resultOK, []string{"1 queries a second"}},
		"busy":            {"more than half: a start sends all at once", loadVerdict(ofSubject("main"), 11, 20), resultWarn, []string{"queriesPerSecond"}},
		"too busy":        {"readings fall behind", loadVerdict(ofSubject("main"), 21, 20), resultFail, []string{"queriesPerSecond", "stale"}},
		"who are you":     {"credentials, not the network", answers("source-refused: HTTP 401 Unauthorized"), resultFail, []string{"credentials", "http.basic_auth"}},
		"forbidden":       {"so is 403", answers("source-refused: HTTP 403 Forbidden"), resultFail, []string{"credentials"}},
		"incomplete":      {"a store behind it is down", answers("partial: isPartial"), resultFail, []string{"store"}},
		"another server":  {"time does not heal it", answers("source-refused: not a Prometheus API"), resultFail, []string{"url"}},
		"nobody there":    {"the network, or the server", answers("source-error: connection refused"), resultFail, []string{"runs"}},
		"its own fault":   {"it runs, and fails", answers("source-error: HTTP 500 Internal Server Error with an html page"), resultFail, []string{"log of source main"}},
		"other path":      {"a prefix is missing", answers("source-refused: HTTP 404 Not Found"), resultFail, []string{"correct url of source main"}},
		"remarks":         {"an answer with a remark", (&sourceSeen{src: config.Source{Name: "m"}, remarks: []string{"store b is down"}}).whole(), resultWarn, []string{"store b is down"}},
		"clock not told":  {"no clock guards nothing", (&sourceSeen{src: config.Source{Name: "m"}}).clock(), resultWarn, nil},
		"no retention":    {"only Prometheus says", (&sourceSeen{src: config.Source{Name: "m"}}).retention(), resultSkip, nil},
		"nothing to load": {"no documents, no load", (&sourceSeen{src: config.Source{Name: "m"}}).load(), resultSkip, nil},
	})
}

func TestModelVerdicts(t *testing.T) {
	endpoint := func(status int, fault, key string) checkItem {
		e := config.Endpoint{Name: "main", Model: "m1", APIKeyFile: key}
		return endpointSeen{e, config.Proposer{}, openai.Probed{Status: status, Fault: fault}}.answers()
	}
	limits := config.ProposerLimits{CallsPerHour: 60, TokensPerDay: 500_000}
	checkVerdicts(t, map[string]verdict{
		"answers":          {"no fault", endpoint(200, "", ""), resultOK, []string{"m1"}},
		"revoked":          {"which key file", endpoint(401, "provider-error: status 401", "model.key"), resultFail, []string{"model.key"}},
		"forbidden":        {"so is 403", endpoint(403, "provider-error: status 403", "model.key"), resultFail, []string{"model.key"}},
		"wants a key":      {"none is configured", endpoint(401, "provider-error: status 401", ""), resultFail, []string{"apiKeyFile"}},
		"no model":         {"404 is the model, or the path", endpoint(404, "provider-error: status 404", ""), resultFail, []string{`"m1"`, "baseURL"}},
		"quota":            {"429", endpoint(429, propose.FaultRateLimited+": status 429", ""), resultFail, []string{"quota"}},
		"broken":           {"5xx is the server's", endpoint(503, "provider-error: status 503", ""), resultFail, []string{"log of the server"}},
		"slow":             {"no answer in time", endpoint(0, propose.FaultTimeout+": none", ""), resultFail, []string{"timeout"}},
		"not there":        {"nobody listens", endpoint(0, "unreachable: refused", ""), resultFail, []string{"runs"}},
		"a portal":         {"200 with a page", endpoint(200, "provider-error: content type", ""), resultFail, []string{"baseURL"}},
		"honoured":         {"the configured form comes", formVerdict(ofSubject("main"), forms{configured: "json_schema", best: "json_schema", honoured: []string{"json_schema"}, others: []string{"tool"}}), resultOK, []string{"not honoured: tool"}},
		"other form":       {"another form would come", formVerdict(ofSubject("main"), forms{configured: "json_schema", best: "tool", instead: "prose", honoured: []string{"tool"}, others: []string{"json_schema"}, mode: "json_schema", fault: "malformed: so"}), resultFail, []string{"set `reply: tool` on endpoint main", "reply: auto"}},
		"no form":          {"no form comes", formVerdict(ofSubject("main"), forms{configured: "json_schema", instead: "prose", others: []string{"json_schema"}, mode: "json_schema", fault: "malformed: so"}), resultFail, []string{"malformed"}},
		"by itself":        {"nothing holds it to the form, and it has it", formVerdict(ofSubject("main"), forms{configured: "json_schema", instead: "prose", others: []string{"json_schema"}, mode: "json_schema"}), resultWarn, []string{"none of the ways", "valid all the same", "some answers"}},
		"other, by itself": {"the configured one is not honoured, and works", formVerdict(ofSubject("main"), forms{configured: "json_schema", best: "tool", instead: "prose", honoured: []string{"tool"}, mode: "json_schema"}), resultWarn, []string{"valid all the same", "set `reply: tool`"}},
		"proposed":         {"in which form", proposalVerdict(ofSubject("main"), "tool", ""), resultOK, []string{"asked with reply: tool"}},
		"malformed":        {"a repair turn follows", proposalVerdict(ofSubject("main"), "tool", propose.FaultMalformed+": no"), resultWarn, []string{"a repair turn follows"}},
		"truncated":        {"and here", proposalVerdict(ofSubject("main"), "tool", propose.FaultTruncated+": no"), resultWarn, []string{"a repair turn follows"}},
		"declined":         {"no turn follows a refusal", proposalVerdict(ofSubject("main"), "tool", propose.FaultRefusal+": no"), resultWarn, []string{"nobody is asked again"}},
		"withheld":         {"nor one by the provider", proposalVerdict(ofSubject("main"), "tool", propose.FaultFiltered+": no"), resultWarn, []string{"nobody is asked again"}},
		"said nothing":     {"there is nothing to repair", proposalVerdict(ofSubject("main"), "tool", propose.FaultEmpty+": no"), resultWarn, []string{"the next endpoint"}},
		"late":             {"the proposal takes long", proposalVerdict(ofSubject("main"), "tool", propose.FaultTimeout+": no"), resultWarn, []string{"raise timeout"}},
		"broke":            {"it failed on the long question", proposalVerdict(ofSubject("main"), "tool", propose.FaultProvider+": status 500"), resultWarn, []string{"log of the server"}},
		"auto":             {"auto takes what there is", formVerdict(ofSubject("main"), forms{configured: "auto", best: "tool", honoured: []string{"tool", "json_object"}}), resultOK, []string{"uses tool"}},
		"auto, none":       {"and needs one", formVerdict(ofSubject("main"), forms{configured: "auto"}), resultFail, nil},
		"whole":            {"all of it arrives", promptVerdict(ofSubject("main"), openai.Probed{EstimatedTokens: 2500, CountedTokens: 2400}, 2500), resultOK, []string{"2400"}},
		"cut":              {"the front is gone", promptVerdict(ofSubject("main"), openai.Probed{EstimatedTokens: 2500, CountedTokens: 512, Truncated: true}, 2500), resultFail, []string{"num_ctx", "promptTokens"}},
		"not counted":      {"it counts nothing, and repeats the word", promptVerdict(ofSubject("main"), openai.Probed{EstimatedTokens: 2500}, 2500), resultOK, []string{"counts no tokens"}},
		"no long one":      {"the long prompt got no answer", promptVerdict(ofSubject("main"), openai.Probed{EstimatedTokens: 2500, PromptDetail: "not known: timeout"}, 2500), resultWarn, []string{"timeout"}},
		"not tried":        {"nothing was sent", promptVerdict(ofSubject("main"), openai.Probed{}, 2500), resultSkip, nil},
		"quick":            {"half the timeout is enough", latencyVerdict(ofSubject("main"), 10*time.Second, 20*time.Second), resultOK, []string{"10s"}},
		"sluggish":         {"more than half", latencyVerdict(ofSubject("main"), 11*time.Second, 20*time.Second), resultWarn, []string{"timeout"}},
		"never timed":      {"no proposal came", latencyVerdict(ofSubject("main"), 0, 20*time.Second), resultSkip, nil},
		"price":            {"enough for a day", priceVerdict(ofSubject("main"), 1000, 100, limits), resultOK, []string{"1000 + 100", "454 a day"}},
		"dear":             {"one bad hour uses up the day", priceVerdict(ofSubject("main"), 20_000, 100, limits), resultWarn, []string{"24 a day", "tokensPerDay"}},
		"not told":         {"tokensPerDay bounds nothing", priceVerdict(ofSubject("main"), 0, 0, limits), resultWarn, []string{"callsPerHour (60)"}},
		"no limits":        {"nothing to compare with", priceVerdict(ofSubject("main"), 1000, 100, config.ProposerLimits{}), resultOK, nil},
		"no proposal":      {"the form is not everything", endpointSeen{Probed: openai.Probed{ProposalFault: "malformed: x"}}.proposal(), resultWarn, []string{"malformed"}},
		"one proposal":     {"as an incident would ask", endpointSeen{}.proposal(), resultOK, nil},
	})
}

func TestReceiverVerdicts(t *testing.T) {
	up := alertmanager.Status{Version: "0.28", Cluster: "ready", Peers: 3, Silences: 2}
	settling := up
	settling.Cluster = "settling"
	connect := func(err error) checkItem { return connectVerdict(ofSubject("backup"), "host:443", true, err) }
	checkVerdicts(t, map[string]verdict{
		"ready":       {"who answers is said, and that no page went", alertmanagerVerdict(ofSubject("a"), up, nil), resultOK, []string{"0.28", "3 peers", "2 active", "no page was sent"}},
		"settling":    {"alerts may come twice", alertmanagerVerdict(ofSubject("a"), settling, nil), resultWarn, nil},
		"no silences": {"what nobody can read holds everything", alertmanagerVerdict(ofSubject("a"), up, fmt.Errorf("%w: 403", alertmanager.ErrSilences)), resultFail, []string{"/api/v2/silences"}},
		"down":        {"nobody is told", alertmanagerVerdict(ofSubject("a"), alertmanager.Status{}, errors.New("refused")), resultFail, []string{"no page reaches anybody"}},
		"fails":       {"it runs, and fails", alertmanagerVerdict(ofSubject("a"), alertmanager.Status{}, errors.New("status of alertmanager a: HTTP 500")), resultFail, []string{"log of receiver", "no page reaches anybody"}},
		"connects":    {"no more than a connection is proved", connect(nil), resultOK, []string{"no page was sent", "TLS"}},
		"no address":  {"the name", connect(&net.DNSError{Err: "no such host", Name: "x"}), resultFail, []string{"name server"}},
		"not trusted": {"the certificate", connect(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), resultFail, []string{"authority"}},
		"no TLS":      {"the scheme", connect(tls.RecordHeaderError{Msg: "x"}), resultFail, []string{"http://"}},
		"refused":     {"the server", connect(errors.New("connection refused")), resultFail, []string{"runs"}},
	})
}

func TestLedgerVerdicts(t *testing.T) {
	chain := func(err error) checkItem { return chainVerdict(ofSubject("setpoint.db"), chainSeen{err: err}) }
	checkVerdicts(t, map[string]verdict{
		"one":        {"one of them is one entry", chainVerdict(ofSubject("l"), chainSeen{whole: true, entries: 1, head: ledger.Position{Seq: 1, Hash: strings.Repeat("a", 64)}}), resultOK, []string{"1 entry verified"}},
		"verified":   {"all of it", chainVerdict(ofSubject("l"), chainSeen{whole: true, entries: 12, head: ledger.Position{Seq: 12, Hash: strings.Repeat("a", 64)}}), resultOK, []string{"12 entries"}},
		"the end":    {"a long one from the checkpoint on, and said so", chainVerdict(ofSubject("l"), chainSeen{head: ledger.Position{Seq: 12}}), resultOK, []string{"newest checkpoint"}},
		"ahead":      {"a clock ran ahead", chainVerdict(ofSubject("l"), chainSeen{whole: true, ahead: time.Hour}), resultFail, []string{"1h0m0s in the future", "lower-mark"}},
		"missing":    {"created by one command", chain(ledger.ErrMissing), resultFail, []string{"ledger init"}},
		"corrupt":    {"restored", chain(fmt.Errorf("%w: entry 3", ledger.ErrCorrupt)), resultFail, []string{"restore", "only observes"}},
		"older":      {"restored, or adopted", chain(seenfile.ErrOlder), resultFail, []string{"adopt"}},
		"unreadable": {"the database", chain(errors.New("disk I/O error")), resultFail, []string{"disk I/O"}},

		"free":           {"nobody holds it", writerVerdict(ofSubject("l"), writer{told: true, signed: 7, alive: true}), resultOK, []string{"free"}},
		"held":           {"an agent works", writerVerdict(ofSubject("l"), writer{told: true, held: true, holder: 7, answers: true}), resultOK, []string{"process 7"}},
		"held by a mute": {"commands cannot write", writerVerdict(ofSubject("l"), writer{told: true, held: true, holder: 7}), resultWarn, []string{"ps -p 7"}},
		"another agent":  {"it writes elsewhere", writerVerdict(ofSubject("l"), writer{told: true, answers: true}), resultWarn, []string{"web.socket"}},
		"signed, alive":  {"the file's word where the host tells nothing", writerVerdict(ofSubject("l"), writer{signed: 9, alive: true}), resultWarn, []string{"process 9"}},
		"signed, gone":   {"a process that is gone holds nothing", writerVerdict(ofSubject("l"), writer{signed: 9}), resultOK, []string{"free"}},

		"room":    {"enough", diskVerdict(ofSubject("/"), 20<<30), resultOK, []string{"20 GiB"}},
		"tight":   {"below 1 GiB", diskVerdict(ofSubject("/"), 1<<29), resultWarn, []string{"0.5 GiB"}},
		"no room": {"a full disk stops every action", diskVerdict(ofSubject("/"), 1<<20), resultFail, []string{"ledger.sqlite.path"}},
		"frozen":  {"who, why and the way out", freezeVerdict(web.Freeze{ID: "f1", By: "os:alice", Reason: "looking", Service: "checkout"}), resultWarn, []string{"checkout is frozen by os:alice: looking", "setpoint thaw f1"}},
	})
}

func TestPolicyVerdicts(t *testing.T) {
	fault := spec.Faults{{Pos: spec.Position{File: "p/gate.rego", Line: 3}, Text: "x is not in the gate input"}}
	checkVerdicts(t, map[string]verdict{
		"good":           {"loads and passes", policySeen{binding: true, revision: strings.Repeat("b", 64)}.verdict(), resultOK, []string{"bbbbbbbbbbbb"}},
		"does not load":  {"observing only", policySeen{folder: "p", binding: true, bad: fault}.verdict(), resultFail, []string{"p/gate.rego:3", "policy check p", "only observes"}},
		"fails its test": {"does not rule either", policySeen{folder: "p", binding: true, failing: fault}.verdict(), resultFail, []string{"policy test p"}},
		"lints":          {"loads, and should not be merged", policySeen{folder: "p", binding: true, lints: 2}.verdict(), resultWarn, []string{"2 lints"}},
		"shadow's test":  {"a shadow binds nobody", policySeen{folder: "p", failing: fault}.verdict(), resultWarn, nil},
		"shadow's fault": {"and compares nothing then", policySeen{folder: "p", bad: fault}.verdict(), resultFail, []string{"compares nothing"}},
	})
}

func TestAgentVerdicts(t *testing.T) {
	own := build{Version: "v1", Revision: strings.Repeat("c", 40)}
	of := func(check string, seen agentSeen) checkItem {
		for _, i := range agentVerdicts("s", seen, own) {
			if i.Check == check {
				return i
			}
		}
		return checkItem{}
	}
	same := agentSeen{ready: true, version: own.Version, revision: own.Revision}
	other, unready := same, same
	other.revision = strings.Repeat("d", 40)
	unready.ready, unready.readyText = false, "Setpoint is not ready: policy"
	checkVerdicts(t, map[string]verdict{
		"none":    {"nothing is measured", of("web/agent", agentSeen{err: errNoAgent}), resultWarn, []string{"setpoint run"}},
		"hung":    {"worse than none", of("web/agent", agentSeen{err: errHung}), resultFail, []string{"restart"}},
		"there":   {"it answers", of("web/agent", same), resultOK, nil},
		"same":    {"one binary", of("web/version", same), resultOK, []string{"v1"}},
		"other":   {"two binaries", of("web/version", other), resultWarn, []string{"dddddddddddd", "cccccccccccc"}},
		"no word": {"it does not say", of("web/version", agentSeen{ready: true}), resultSkip, nil},
		"ready":   {"it is", of("web/ready", same), resultOK, nil},
		"unready": {"why not", of("web/ready", unready), resultFail, []string{"policy"}},
	})
}

func TestConfigVerdicts(t *testing.T) {
	one := spec.Set{Services: []spec.Service{{Name: "checkout"}}}
	secret := func(mode fs.FileMode, err error) checkItem {
		return secretVerdict("secrets.scaler", "scaler.key", mode, err)
	}
	checkVerdicts(t, map[string]verdict{
		"documents":  {"what is there", documentsVerdict(ofSubject("slo"), one, nil), resultOK, []string{"1 service"}},
		"note":       {"a remark is no warning", documentsVerdict(ofSubject("slo"), one, []spec.Note{{Text: "x"}}), resultOK, nil},
		"lint":       {"a mistake most often", documentsVerdict(ofSubject("slo"), one, []spec.Note{{Lint: "expired", Text: "it is over"}}), resultWarn, []string{"it is over", "setpoint validate"}},
		"empty":      {"nothing is measured", documentsVerdict(ofSubject("slo"), spec.Set{}, nil), resultWarn, []string{"documents"}},
		"secret":     {"its owner's", secret(0o600, nil), resultOK, nil},
		"group's":    {"a group may share it", secret(0o640, nil), resultOK, nil},
		"everyone's": {"the whole host's", secret(0o644, nil), resultWarn, []string{"chmod 600 scaler.key"}},
		"no file":    {"which key names it", secret(0, fmt.Errorf("x: %w", fs.ErrNotExist)), resultFail, []string{"secrets.scaler"}},
		"not ours":   {"another user's", secret(0, fmt.Errorf("x: %w", fs.ErrPermission)), resultFail, []string{"chown"}},
		"blank":      {"no secret in it", secret(0o600, errors.New("the file scaler.key is empty")), resultFail, []string{"is empty"}},
	})
}

func FuzzLockHolder(f *testing.F) {
	const held = "1: POSIX  ADVISORY  WRITE 12 08:01:777 0 EOF\n2: FLOCK  ADVISORY  WRITE 4711 08:01:777 0 EOF\n3: -> FLOCK  ADVISORY  WRITE 9 08:01:777 0 EOF\n"
	f.Add(held, uint64(777))
	f.Add("1: FLOCK  ADVISORY  WRITE x 08:01:778 0 EOF\n", uint64(778))
	f.Add("FLOCK\n\n:\n", uint64(0))
	f.Fuzz(func(t *testing.T, text string, inode uint64) {
		pid, ok := lockHolder(text, inode)
		if !ok && pid != 0 || ok && !strings.Contains(text, fmt.Sprint(inode)) {
			t.Errorf("lockHolder(%q, %d) = %d, %v", text, inode, pid, ok)
		}
		if text == held && inode == 777 && (pid != 4711 || !ok) {
			t.Errorf("got %d, %v", pid, ok)
		}
	})
}

func FuzzBuiltFrom(f *testing.F) {
	f.Add("# HELP x\nsetpoint_build_info{goversion=\"go1\",revision=\"abc\",version=\"v1\"} 1\n")
	f.Add("setpoint_build_info{version=\"\"}")
	f.Fuzz(func(t *testing.T, text string) {
		version, revision := builtFrom(text)
		if !strings.Contains(text, version) || !strings.Contains(text, revision) || (version != "" || revision != "") && !strings.Contains(text, "setpoint_build_info{") {
			t.Errorf("builtFrom(%q) = %q, %q", text, version, revision)
		}
	})
}
