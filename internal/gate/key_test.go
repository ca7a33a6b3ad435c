package gate_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"math"
	"os"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var update = flag.Bool("update", false, "rewrite generated files in testdata")

// golden are vectors that any other implementation can check: the canonical
// text is written out, so that its SHA-256 can be computed by hand.
type golden struct {
	Windows []struct {
		Now    string `json:"now"`
		Length string `json:"length"`
		ID     string `json:"id"`
		Key    string `json:"key"`
	} `json:"windows"`
	Digests []struct {
		Why        string            `json:"why"`
		Service    string            `json:"service"`
		Key        string            `json:"key"`
		Action     string            `json:"action"`
		Uses       string            `json:"uses"`
		Target     spec.Target       `json:"target"`
		Parameters []goldenParameter `json:"parameters"`
		Canonical  string            `json:"canonical"`
		Digest     string            `json:"digest"`
	} `json:"digests"`
}

type goldenParameter struct {
	Name    string   `json:"name"`
	Integer *int64   `json:"integer,omitempty"`
	Number  *float64 `json:"number,omitempty"`
	String  *string  `json:"string,omitempty"`
	Boolean *bool    `json:"boolean,omitempty"`
}

func (g goldenParameter) value() any {
	switch {
	case g.Integer != nil:
		return *g.Integer
	case g.Number != nil:
		return *g.Number
	case g.String != nil:
		return *g.String
	default:
		return *g.Boolean
	}
}

func TestGolden(t *testing.T) {
	raw, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	for _, w := range g.Windows {
		at, err := time.Parse(time.RFC3339Nano, w.Now)
		if err != nil {
			t.Fatal(err)
		}
		length, err := time.ParseDuration(w.Length)
		if err != nil {
			t.Fatal(err)
		}
		id := gate.WindowAt(at, length)
		if id.String() != w.ID || string(gate.KeyOf("checkout", id)) != w.Key {
			t.Errorf("%s of %s: %s %s, want %s %s", w.Now, w.Length, id, gate.KeyOf("checkout", id), w.ID, w.Key)
		}
	}
	for _, d := range g.Digests {
		p := propose.Parameters{}
		for _, v := range d.Parameters {
			p[v.Name] = v.value()
		}
		sum := sha256.Sum256([]byte(d.Canonical))
		if want := hex.EncodeToString(sum[:]); want != d.Digest {
			t.Errorf("%s: the vector itself is wrong: SHA-256 of canonical is %s", d.Why, want)
		}
		got, err := gate.Digest(d.Service, gate.Key(d.Key), spec.Action{Name: d.Action, Uses: d.Uses, Target: d.Target}, p)
		if err != nil || got != d.Digest {
			t.Errorf("%s: digest %s (%v), want %s", d.Why, got, err, d.Digest)
		}
	}
	if len(g.Windows) < 5 || len(g.Digests) < 5 {
		t.Errorf("%d windows and %d digests are too few", len(g.Windows), len(g.Digests))
	}
}

func TestDigestRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		p      propose.Parameters
		a      spec.Action
	}{
		"NaN":        {"has no JSON", propose.Parameters{"x": math.NaN()}, scale()},
		"Infinity":   {"has no JSON", propose.Parameters{"x": math.Inf(-1)}, scale()},
		"BigInteger": {"2^53+1 and 2^53 would share a text", propose.Parameters{"x": int64(1<<53 + 1)}, scale()},
		"SmallInt":   {"likewise below", propose.Parameters{"x": int64(-1 << 53)}, scale()},
		"Null":       {"no parameter is null", propose.Parameters{"x": nil}, scale()},
		"Int":        {"one Go type for one thing", propose.Parameters{"x": 1}, scale()},
		"List":       {"parameters are scalars", propose.Parameters{"x": []any{"a"}}, scale()},
		"BadUTF8":    {"would become U+FFFD", propose.Parameters{"x": "\xff"}, scale()},
		"BadName":    {"would become U+FFFD", propose.Parameters{"\xff": "x"}, scale()},
		"BadURL":     {"would become U+FFFD", nil, spec.Action{Name: "a", Target: spec.Target{URL: "http://\xff"}}},
		"BadArgv":    {"would become U+FFFD", nil, spec.Action{Name: "a", Target: spec.Target{Argv: []string{"/a", "\xff"}}}},
		"BadStatus":  {"would become U+FFFD", nil, spec.Action{Name: "a", Target: spec.Target{Argv: []string{"/a"}, StatusArgv: []string{"\xff"}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if d, err := gate.Digest("checkout", "checkout:0-600", tc.a, tc.p); err == nil || d != "" {
				t.Errorf("%s: digest %q, want an error", tc.reason, d)
			}
		})
	}
}

func TestDigestTellsApart(t *testing.T) {
	base, err := gate.Digest("checkout", "checkout:0-600", scale(), propose.Parameters{"replicas": int64(6)})
	if err != nil {
		t.Fatal(err)
	}
	named := func(change func(*spec.Action)) spec.Action { a := scale(); change(&a); return a }
	six := propose.Parameters{"replicas": int64(6)}
	cases := map[string]struct {
		service string
		key     gate.Key
		a       spec.Action
		p       propose.Parameters
		same    bool
	}{
		"Service":   {"cart", "checkout:0-600", scale(), six, false},
		"Key":       {"checkout", "checkout:600-600", scale(), six, false},
		"Name":      {"checkout", "checkout:0-600", named(func(a *spec.Action) { a.Name = "x" }), six, false},
		"Uses":      {"checkout", "checkout:0-600", named(func(a *spec.Action) { a.Uses = "x.y" }), six, false},
		"URL":       {"checkout", "checkout:0-600", named(func(a *spec.Action) { a.Target.URL += "y" }), six, false},
		"Secret":    {"checkout", "checkout:0-600", named(func(a *spec.Action) { a.Target.Secret = "other" }), six, false},
		"Argv":      {"checkout", "checkout:0-600", named(func(a *spec.Action) { a.Target.Argv = []string{"/a"} }), six, false},
		"Status":    {"checkout", "checkout:0-600", named(func(a *spec.Action) { a.Target.StatusArgv = []string{"/a"} }), six, false},
		"Value":     {"checkout", "checkout:0-600", scale(), propose.Parameters{"replicas": int64(7)}, false},
		"Type":      {"checkout", "checkout:0-600", scale(), propose.Parameters{"replicas": "6"}, false},
		"More":      {"checkout", "checkout:0-600", scale(), propose.Parameters{"replicas": int64(6), "x": true}, false},
		"Cooldown":  {"checkout", "checkout:0-600", named(func(a *spec.Action) { a.Cooldown = 1 }), six, true},
		"SixPoint0": {"checkout", "checkout:0-600", scale(), propose.Parameters{"replicas": 6.0}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := gate.Digest(tc.service, tc.key, tc.a, tc.p)
			if err != nil || (d == base) != tc.same {
				t.Errorf("digest %s (%v), base %s, want same %v", d, err, base, tc.same)
			}
		})
	}
}

func TestWindowAt(t *testing.T) {
	for _, length := range []time.Duration{-1, 0, time.Millisecond, time.Second, 10 * time.Minute, 90 * time.Minute} {
		for _, at := range []time.Time{now, time.Unix(0, 0), time.Unix(-1, 0), time.Unix(599, 999999999), time.Unix(600, 0)} {
			w := gate.WindowAt(at, length)
			if w.Length < 1 || at.Unix() < w.Start || !at.Before(w.End()) || w.Start%w.Length != 0 {
				t.Errorf("window of %s at %s: %s does not hold it", length, at, w)
			}
			if back, err := gate.ParseWindowID(w.String()); err != nil || back != w {
				t.Errorf("%s read back as %v (%v)", w, back, err)
			}
		}
	}
}

func TestKeyWindow(t *testing.T) {
	for key, service := range map[gate.Key]string{
		"checkout:0-600": "cart", ":0-600": "", "checkout:0-0": "checkout", "checkout:00-600": "checkout",
		"checkout:+1-600": "checkout", "checkout:9223372036854775807-600": "checkout", "checkout:0-600 ": "checkout",
		"checkout:": "checkout", "checkout:5": "checkout", "checkout": "checkout", "checkout:a:0-600": "checkout",
	} {
		if w, err := key.Window(service); err == nil {
			t.Errorf("key %q of %q gave %v", key, service, w)
		}
	}
	if w, err := gate.Key("a:b:-600-600").Window("a:b"); err != nil || w != (gate.WindowID{Start: -600, Length: 600}) {
		t.Errorf("got %v (%v)", w, err)
	}
}

func FuzzParseWindowID(f *testing.F) {
	for _, s := range []string{"0-600", "-600-600", "1764385920-600", "+1-1", "01-1", "1-", "-", "", "1--1", "9223372036854775807-1", "１-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w, err := gate.ParseWindowID(s)
		if err == nil && (w.String() != s || w.Length < 1 || w.End().Unix() < w.Start) {
			t.Errorf("%q read as %v", s, w)
		}
	})
}
