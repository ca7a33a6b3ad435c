package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/execute/webhook"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var (
	now    = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	secret = []byte("shared with the scaler")
	six    = propose.Parameters{"replicas": int64(6)}
)

func clock() time.Time { return now }

func action(url string) spec.Action {
	lo, hi := 3.0, 20.0
	return spec.Action{
		Name: "scale", Uses: webhook.Uses, Class: spec.ClassAuto, Reversal: spec.Restore,
		Target:  spec.Target{URL: url + "/checkout", StatusURL: url + "/checkout", Secret: "scaler"},
		Timeout: 10 * time.Second, MaxLateness: 30 * time.Second, Settle: time.Minute,
		Parameters: []spec.Parameter{{Name: "replicas", Type: spec.Integer, Minimum: &lo, Maximum: &hi}},
	}
}

func executor(t *testing.T, o webhook.Options) *webhook.Executor {
	t.Helper()
	if o.Now == nil {
		o.Now = clock
	}
	if o.Secret == nil {
		o.Secret = func(name string) ([]byte, bool) { return secret, name == "scaler" }
	}
	e, err := webhook.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// serve runs a real server on loopback and an executor that may reach it.
func serve(t *testing.T, h http.HandlerFunc) (*webhook.Executor, spec.Action) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return executor(t, webhook.Options{Allow: []string{srv.URL + "/"}}), action(srv.URL)
}

func send(t *testing.T, e *webhook.Executor, a spec.Action) execute.Receipt {
	t.Helper()
	r, err := e.Execute(t.Context(), executetest.Permit(t, a, six, now), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestContract(t *testing.T) {
	for name, start := range map[string]func(http.Handler) *httptest.Server{
		"http": httptest.NewServer, "https": httptest.NewTLSServer,
	} {
		t.Run(name, func(t *testing.T) {
			executetest.Run(t, func(t *testing.T, now func() time.Time) executetest.Bench { return bench(t, now, start) })
		})
	}
}

func bench(t *testing.T, now func() time.Time, start func(http.Handler) *httptest.Server) executetest.Bench {
	t.Helper()
	target, err := executetest.NewActuator(executetest.ActuatorOptions{Secret: secret, State: map[string]any{"replicas": 4}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	srv := start(target)
	t.Cleanup(srv.Close)
	connecting := func(context.Context) {}
	return executetest.Bench{
		Executor: executor(t, webhook.Options{
			Allow: []string{srv.URL + "/"}, Now: now, TLS: trusting(srv),
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				connecting(ctx)
				return (&net.Dialer{}).DialContext(ctx, network, address)
			},
		}),
		Action:     action(srv.URL),
		Parameters: six,
		Fault:      func(m executetest.Mode) bool { target.SetMode(m); return true },
		Connecting: func(hook func(context.Context)) { connecting = hook },
		Journal:    target.Journal,
	}
}

// trusting is a client's configuration that knows a test server; nil for http.
func trusting(srv *httptest.Server) *tls.Config {
	if srv.Certificate() == nil {
		return nil
	}
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	return &tls.Config{RootCAs: pool}
}

// Every status of the contract's row, with and without a body that says
// something.
func TestStatus(t *testing.T) {
	const body = `{"result":"%s"}`
	type want = execute.Effect
	cases := []struct {
		status int
		result string
		want   want
	}{
		{200, "", execute.Applied}, {200, "applied", execute.Applied}, {200, "no-op", execute.NoOp},
		{200, "failed", execute.Failed}, {200, "not-now", execute.NotNow}, {200, "in-doubt", execute.Applied},
		{200, "NO-OP", execute.Applied}, {201, "no-op", execute.NoOp}, {202, "", execute.Applied},
		{202, "failed", execute.Failed}, {204, "", execute.Applied}, {226, "", execute.Applied}, {299, "not-now", execute.NotNow},
		{300, "", execute.Failed}, {301, "", execute.Failed}, {302, "", execute.Failed}, {303, "applied", execute.Failed},
		{304, "", execute.Failed}, {307, "", execute.Failed}, {308, "", execute.Failed}, {399, "", execute.Failed},
		{400, "", execute.Failed}, {400, "applied", execute.Failed}, {401, "", execute.Failed}, {403, "", execute.Failed},
		{404, "", execute.Failed}, {408, "", execute.InDoubt}, {408, "not-now", execute.InDoubt},
		{409, "", execute.Applied}, {409, "failed", execute.Applied}, {412, "", execute.Failed}, {422, "", execute.Failed},
		{425, "", execute.InDoubt}, {429, "", execute.NotNow}, {429, "applied", execute.NotNow}, {499, "", execute.Failed},
		{500, "", execute.InDoubt}, {500, "failed", execute.InDoubt}, {500, "not-now", execute.InDoubt}, {501, "", execute.InDoubt},
		{502, "", execute.InDoubt}, {503, "", execute.InDoubt}, {503, "not-now", execute.NotNow}, {503, "failed", execute.InDoubt},
		{503, "no-op", execute.InDoubt}, {504, "", execute.InDoubt}, {504, "not-now", execute.InDoubt}, {599, "", execute.InDoubt},
		{600, "", execute.InDoubt}, {999, "", execute.InDoubt},
	}
	for _, tc := range cases {
		t.Run(fmt.Sprintf("%d %s", tc.status, tc.result), func(t *testing.T) {
			e, a := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if tc.status >= 300 && tc.status <= 399 {
					w.Header().Set("Location", "http://"+r.Host+"/elsewhere")
				}
				w.WriteHeader(tc.status)
				if tc.result != "" {
					_, _ = fmt.Fprintf(w, body, tc.result)
				}
			})
			r := send(t, e, a)
			want := execute.Receipt{Effect: tc.want, At: now, Detail: r.Detail}
			if tc.want == execute.Applied {
				want.AppliedAt = now
				if tc.status == 202 {
					want.AppliedAt = now.Add(a.MaxLateness)
				}
			}
			if diff := cmp.Diff(want, r); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if !strings.HasPrefix(r.Detail, fmt.Sprintf("HTTP %d", tc.status)) {
				t.Errorf("detail %q does not begin with the status", r.Detail)
			}
		})
	}
}

// What is wrong with the body decides only where the body has a say.
func TestBody(t *testing.T) {
	long := strings.Repeat("x", execute.MaxAnswer)
	cases := map[string]struct {
		reason string
		status int
		body   string
		length string // a Content-Length that the body does not keep
		want   execute.Effect
	}{
		"Prose":         {reason: "a body that is no JSON says nothing", status: 200, body: "done, failed over", want: execute.Applied},
		"Array":         {reason: "nor does JSON that is no object", status: 200, body: `["failed"]`, want: execute.Applied},
		"NoString":      {reason: "a result that is no word is none of the three", status: 200, body: `{"result":false}`, want: execute.Applied},
		"Case":          {reason: "keys are what they are", status: 200, body: `{"Result":"failed"}`, want: execute.Applied},
		"Nested":        {reason: "only the object's own result counts", status: 200, body: `{"a":{"result":"failed"}}`, want: execute.Applied},
		"Twice":         {reason: "two results are no statement", status: 200, body: `{"result":"applied","result":"failed"}`, want: execute.InDoubt},
		"CutOff":        {reason: "an object that does not end may have said failed", status: 200, body: `{"result":"fai`, want: execute.InDoubt},
		"Short":         {reason: "fewer bytes than announced: the rest may have said failed", status: 200, body: "ok", length: "400", want: execute.InDoubt},
		"ShortRefusal":  {reason: "a status that decides alone needs no body", status: 400, body: "no", length: "400", want: execute.Failed},
		"ShortDone":     {reason: "409 likewise", status: 409, body: "no", length: "400", want: execute.Applied},
		"ShortNotNow":   {reason: "a 503 needs its whole body", status: 503, body: `{"result":"not-now"}`, length: "400", want: execute.InDoubt},
		"LongProse":     {reason: "a long page is no JSON from its first byte", status: 200, body: "<html>" + long, want: execute.Applied},
		"LongObject":    {reason: "an object longer than the limit may say anything", status: 200, body: `{"a":"` + long + `","result":"failed"}`, want: execute.InDoubt},
		"ByteOrderMark": {reason: "is no JSON", status: 200, body: "\ufeff{\"result\":\"failed\"}", want: execute.Applied},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if tc.length != "" {
					w.Header().Set("Content-Length", tc.length)
				}
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			})
			if r := send(t, e, a); r.Effect != tc.want {
				t.Errorf("%s: %s (%s), want %s", tc.reason, r.Effect, r.Detail, tc.want)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	var got *http.Request
	var body []byte
	e, a := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.Background())
		body, _ = io.ReadAll(r.Body)
	})
	p := executetest.Permit(t, a, six, now)
	if _, err := e.Execute(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if got.Method != http.MethodPost || got.URL.Path != "/checkout" || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s, %s", got.Method, got.URL, got.Header)
	}
	if k := got.Header.Get("X-Setpoint-Key"); k != string(p.Key()) {
		t.Errorf("X-Setpoint-Key %q, want %q", k, p.Key())
	}
	for name := range got.Header {
		if strings.Contains(strings.ToLower(name), "idempotency") {
			t.Errorf("header %s makes HTTP clients and proxies replay the request", name)
		}
	}
	if !executetest.Verify(secret, got.Header.Get("X-Setpoint-Signature"), body) {
		t.Errorf("signature %q does not verify over the body", got.Header.Get("X-Setpoint-Signature"))
	}
	if s := got.Header.Get("X-Setpoint-Signature"); !strings.HasPrefix(s, fmt.Sprintf("t=%d,v1=", now.Unix())) {
		t.Errorf("signature %q", s)
	}
	if !got.Close {
		t.Error("the connection was to be kept")
	}
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "setpoint.dev/v1alpha1", "key": string(p.Key()), "digest": p.Digest(),
		"service": "checkout", "action": "scale", "parameters": map[string]any{"replicas": 6.0},
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("body, -want +got:\n%s", diff)
	}
}

func TestUnsignedWithoutSecret(t *testing.T) {
	var header http.Header
	e, a := serve(t, func(_ http.ResponseWriter, r *http.Request) { header = r.Header.Clone() })
	a.Target.Secret = ""
	a.Parameters = nil
	r, err := e.Execute(t.Context(), executetest.Permit(t, a, nil, now), nil)
	if err != nil || r.Effect != execute.Applied {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, ok := header["X-Setpoint-Signature"]; ok {
		t.Error("a request without secret carries a signature")
	}
}

// A redirect is an answer; nothing goes to where it points.
func TestNoRedirect(t *testing.T) {
	target, err := executetest.NewActuator(executetest.ActuatorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	target.SetMode(executetest.ModeRedirect)
	e, a := serve(t, target.ServeHTTP)
	if r := send(t, e, a); r.Effect != execute.Failed {
		t.Errorf("%+v, want failed", r)
	}
	if js := target.Journal(); len(js) != 1 || js[0].Path != "/checkout" {
		t.Errorf("the target saw %+v", js)
	}
}

// TestMain sets a proxy before anything can read the environment: net/http
// reads it once in a process.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"} {
		if err := os.Setenv(name, "http://proxy.invalid:3128"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func TestNoProxyFromEnvironment(t *testing.T) {
	// Go never proxies loopback, so the target has a name that only this dialer
	// knows.
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	var dialled []string
	e := executor(t, webhook.Options{
		Allow: []string{"http://scaler.internal/"},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled = append(dialled, address)
			return (&net.Dialer{}).DialContext(ctx, network, srv.Listener.Addr().String())
		},
	})
	if r := send(t, e, action("http://scaler.internal")); r.Effect != execute.Applied {
		t.Errorf("%+v, want applied", r)
	}
	if diff := cmp.Diff([]string{"scaler.internal:80"}, dialled); diff != "" {
		t.Errorf("the effect went elsewhere, -want +got:\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	var seen atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	defer srv.Close()
	cases := map[string]struct {
		reason string
		allow  string
		change func(*spec.Action)
		text   string
	}{
		"NotListed":  {"documents reach no further than setpoint.yaml", srv.URL + "/other", func(*spec.Action) {}, "not on the allow-list"},
		"NoSecret":   {"an unknown secret must not become an unsigned request", srv.URL + "/", func(a *spec.Action) { a.Target.Secret = "gone" }, `secret "gone"`},
		"NoTimeout":  {"without a deadline there is no horizon", srv.URL + "/", func(a *spec.Action) { a.Timeout = 0 }, "no timeout"},
		"UserInfo":   {"a password in a URL ends in logs", srv.URL + "/", func(a *spec.Action) { a.Target.URL = strings.Replace(a.Target.URL, "//", "//u:hunter2@", 1) }, "user info"},
		"OtherPlace": {"a host that only begins like a listed one", srv.URL + "/", func(a *spec.Action) { a.Target.URL = srv.URL + ".evil.example/checkout" }, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := action(srv.URL)
			tc.change(&a)
			e := executor(t, webhook.Options{Allow: []string{tc.allow}})
			r, err := e.Execute(t.Context(), executetest.Permit(t, a, six, now), nil)
			if err == nil || r.Effect != execute.Failed || !strings.Contains(err.Error(), tc.text) {
				t.Fatalf("%s: receipt %+v, error %v, want one with %q", tc.reason, r, err, tc.text)
			}
			if strings.Contains(err.Error()+r.Detail, "hunter2") {
				t.Errorf("the refusal prints a password: %v", err)
			}
			if seen.Load() != 0 {
				t.Errorf("%s: the target was reached", tc.reason)
			}
		})
	}
	if _, err := webhook.New(webhook.Options{}); err == nil {
		t.Error("an executor without a clock would never see a permit expire")
	}
}

// The permit is looked at after the last thing that takes time.
func TestExpiresBetweenCheckAndSend(t *testing.T) {
	var seen atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	defer srv.Close()
	at := now
	e := executor(t, webhook.Options{
		Allow: []string{srv.URL + "/"}, Now: func() time.Time { return at },
		Secret: func(string) ([]byte, bool) { at = at.Add(executetest.TTL); return secret, true },
	})
	_, err := e.Execute(t.Context(), executetest.Permit(t, action(srv.URL), six, now), nil)
	if !errors.Is(err, execute.ErrNoPermit) || seen.Load() != 0 {
		t.Errorf("error %v, %d requests; want ErrNoPermit and none", err, seen.Load())
	}
}
