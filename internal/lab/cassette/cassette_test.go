package cassette_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/lab/cassette"
)

const canary = "sk-canary-0123456789"

var head = cassette.Head{Of: "a test", Model: "m", Reply: "json_schema", Prompts: "p@1"}

// send asks with a key, as the client of a model does, and gives status and body.
func send(t *testing.T, rt http.RoundTripper, url, body string) (int, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+canary)
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type") + " " + resp.Header.Get("Retry-After") + " " + resp.Header.Get("Set-Cookie") + " " + string(b), nil
}

// answers is an endpoint that answers by what it is asked, and echoes secrets.
func answers(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", "session=1")
		switch {
		case bytes.Contains(body, []byte("busy")):
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		case bytes.Contains(body, []byte("broken")):
			panic(http.ErrAbortHandler)
		case bytes.Contains(body, []byte("hang")):
			<-r.Context().Done()
		case bytes.Contains(body, []byte("bytes")):
			_, _ = w.Write([]byte{0xff, 0x00, 'x'})
		default:
			_, _ = io.WriteString(w, `{"echo":`+string(body)+`,"auth":"`+r.Header.Get("Authorization")+`","host":"`+r.Host+`"}`)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// What the recording run saw is what a replay sees, faults and all, at another
// address and without a network.
func TestReplayIsTheRecording(t *testing.T) {
	t.Parallel()
	url := answers(t)
	asked := []string{`{"model":"m","n":1}`, `{"a":"busy"}`, `{"a":"broken"}`, `{"a":"hang"}`, `{"a":"bytes"}`, `{"model":"m","n":1}`}
	type seen struct {
		Status int
		Body   string
		Fault  string
		Late   bool
	}
	run := func(rt http.RoundTripper, at string) []seen {
		var out []seen
		for _, body := range asked {
			status, text, err := send(t, rt, at, body)
			s := seen{Status: status, Body: text, Late: errors.Is(err, context.DeadlineExceeded)}
			if err != nil {
				s.Fault = err.Error()
			}
			out = append(out, s)
		}
		return out
	}
	var file bytes.Buffer
	rec, err := cassette.Record(&file, head, &http.Transport{DisableKeepAlives: true}, canary)
	if err != nil {
		t.Fatal(err)
	}
	want := run(rec, url)
	recorded := bytes.Clone(file.Bytes())
	// A key in a request would be cut out too, though no request of ours has one.
	if _, _, err := send(t, rec, url, `{"key":"`+canary+`"}`); err != nil || rec.Err() != nil {
		t.Fatal(err, rec.Err())
	}
	for _, secret := range []string{canary, strings.TrimPrefix(url, "http://"), "Set-Cookie", "Authorization"} {
		if strings.Contains(file.String(), secret) {
			t.Errorf("the cassette holds %q:\n%s", secret, file.String())
		}
	}
	if !want[3].Late || want[1].Status != 429 || want[2].Fault == "" {
		t.Fatalf("the endpoint did not fail as it should: %+v", want)
	}
	for range 2 {
		p, err := cassette.Play(bytes.NewReader(recorded))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, run(p, "http://replay.invalid/elsewhere")); diff != "" {
			t.Errorf("-recorded, +replayed:\n%s", diff)
		}
		if err := p.Err(); err != nil {
			t.Error(err)
		}
	}
}

// Two recordings of the same exchanges are the same bytes.
func TestStable(t *testing.T) {
	t.Parallel()
	var files [2]bytes.Buffer
	for i := range files {
		rec, err := cassette.Record(&files[i], head, http.DefaultTransport, canary)
		if err != nil {
			t.Fatal(err)
		}
		url := answers(t)
		for _, body := range []string{"{\"b\":2, \"a\":\"é<>\"}", `{"a":"é<>","b":2}`} {
			if _, _, err := send(t, rec, url, body); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff(files[0].String(), files[1].String()); diff != "" {
		t.Errorf("-first, +second:\n%s", diff)
	}
}

func TestWhatIsNotRecorded(t *testing.T) {
	t.Parallel()
	url := answers(t)
	var file bytes.Buffer
	rec, err := cassette.Record(&file, head, http.DefaultTransport)
	if err != nil {
		t.Fatal(err)
	}
	text := `{"messages":[{"content":"` + strings.Repeat("the same words ", 20) + `since 300 seconds","role":"user"}],"model":"m"}`
	for _, body := range []string{`{"model":"other","x":[1,2]}`, text} {
		if _, _, err := send(t, rec, url, body); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		reason string
		asked  []string
		want   []string
	}{
		"another number": {"what differs is shown, not that something does", []string{`{"model":"other","x":[1,2]}`, strings.Replace(text, "300", "330", 1)},
			[]string{"was not recorded", "the nearest is exchange 2 (line 3)", "/messages/0/content: recorded", `since 300 seconds`, `since 330 seconds`, "exchange 2 (line 3", "not asked for"}},
		"another key":        {"a key more is a difference", []string{`{"model":"other","x":[1,2],"y":true}`}, []string{"/y: recorded nothing, asked true"}},
		"a shorter list":     {"so is an entry less", []string{`{"model":"other","x":[1]}`}, []string{"/x: recorded 2 entries, asked 1"}},
		"another type":       {"so is another type", []string{`{"model":7,"x":[1,2]}`}, []string{`/model: recorded "other", asked 7`}},
		"once more":          {"a second answer is made up by nobody", []string{text, text}, []string{"once more than the 1 times", "exchange 1 (line 2"}},
		"laid out otherwise": {"the form of the JSON does not matter", []string{"{ \"x\": [1, 2],\n\"model\":\"other\"}", text}, nil},
		"no JSON":            {"and what is none is none", []string{"hello"}, []string{"no JSON"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := cassette.Play(bytes.NewReader(file.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			for _, body := range tc.asked {
				_, _, _ = send(t, p, "http://replay.invalid", body)
			}
			err = p.Err()
			if (err == nil) != (tc.want == nil) {
				t.Fatalf("Err() = %v: %s", err, tc.reason)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Err() = %v\nwant %q in it: %s", err, want, tc.reason)
				}
			}
		})
	}
}

func TestDamagedCassettes(t *testing.T) {
	t.Parallel()
	const h = `{"format":"setpoint.dev/cassette/v1","of":"","model":"m","reply":"","prompts":""}` + "\n"
	tests := map[string]struct{ reason, file, want string }{
		"empty":         {"nothing says what it is", "", "has no head"},
		"another file":  {"not a cassette", `{"format":"setpoint.dev/ledger-export/v1"}`, "line 1 of the cassette"},
		"format":        {"of a later version", strings.Replace(h, "v1", "v9", 1), `format "setpoint.dev/cassette/v9"`},
		"no JSON":       {"cut off", h + `{"method":`, "line 2"},
		"unknown field": {"nothing is left out in silence", h + `{"metod":"POST"}`, "unknown field"},
		"changed":       {"a digest that is not the request's", h + `{"method":"POST","path":"/","digest":"ab","request":{"a":1},"status":200,"header":{},"reply":""}`, "somebody changed the line"},
		"two on a line": {"strict to the end", strings.TrimSpace(h) + "{}", "something after"},
	}
	for name, tc := range tests {
		if _, err := cassette.Play(strings.NewReader(tc.file)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: Play = %v, want %q: %s", name, err, tc.want, tc.reason)
		}
	}
}

// FuzzPlay: whatever a file holds, reading it ends, and what can be read can be
// asked.
func FuzzPlay(f *testing.F) {
	f.Add([]byte(`{"format":"setpoint.dev/cassette/v1","of":"","model":"m","reply":"","prompts":""}` + "\n"))
	f.Add([]byte("{}\n{}"))
	f.Fuzz(func(t *testing.T, file []byte) {
		p, err := cassette.Play(bytes.NewReader(file))
		if err != nil {
			return
		}
		_, _, _ = send(t, p, "http://replay.invalid", `{"a":1}`)
		if p.Err() == nil {
			t.Error("a request that was not recorded is no error")
		}
	})
}

// A key that begins another one leaves no rest of it on the cassette.
func TestKeyThatBeginsAnother(t *testing.T) {
	const longer = canary + "-tail-of-the-longer"
	var file bytes.Buffer
	rec, err := cassette.Record(&file, head, http.DefaultTransport, canary, longer)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := send(t, rec, answers(t), `{"key":"`+longer+`"}`); err != nil || rec.Err() != nil {
		t.Fatal(err, rec.Err())
	}
	if !strings.Contains(file.String(), `{"key":"<secret>"}`) || strings.Contains(file.String(), "tail") {
		t.Errorf("the cassette holds a part of a key:\n%s", file.String())
	}
}
