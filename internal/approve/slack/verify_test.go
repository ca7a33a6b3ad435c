package slack_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/approve/slack"
)

// sign is Slack's signature, made here from its description.
func sign(key, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte("v0:" + timestamp + ":"))
	mac.Write(body)
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}

func form(payload []byte) []byte { return []byte("payload=" + url.QueryEscape(string(payload))) }

// signed is a request as Slack posts it.
func signed(key string, at time.Time, body []byte) *http.Request {
	r := httptest.NewRequest(http.MethodPost, slack.Path, bytes.NewReader(body))
	timestamp := strconv.FormatInt(at.Unix(), 10)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Slack-Request-Timestamp", timestamp)
	r.Header.Set("X-Slack-Signature", sign(key, timestamp, body))
	return r
}

func (w *world) handler(key string) http.Handler {
	w.t.Helper()
	h, err := w.clicks.Handler(key)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// post returns the status, and fails on words in the body.
func (w *world) post(h http.Handler, r *http.Request) int {
	w.t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	if rec.Body.Len() > 0 {
		w.t.Errorf("answered %q, want an empty body", rec.Body)
	}
	return rec.Code
}

const (
	hSignature = "X-Slack-Signature"
	hTimestamp = "X-Slack-Request-Timestamp"
)

func TestOnlySlackIsBelieved(t *testing.T) {
	upper := func(r *http.Request) {
		s := r.Header.Get(hSignature)
		r.Header.Set(hSignature, "v0="+strings.ToUpper(s[3:]))
	}
	tests := map[string]struct {
		reason string
		// age is how old the signature is.
		age    time.Duration
		change func(r *http.Request)
		status int
		want   slack.Result
	}{
		"Good":            {"as Slack posts it", 0, func(*http.Request) {}, 200, slack.Recorded},
		"AlmostStale":     {"five minutes are allowed", 5 * time.Minute, func(*http.Request) {}, 200, slack.Recorded},
		"AlmostFuture":    {"clocks may differ", -5 * time.Minute, func(*http.Request) {}, 200, slack.Recorded},
		"Old":             {"a replay of what was signed before", 5*time.Minute + time.Second, func(*http.Request) {}, 401, slack.Stale},
		"Future":          {"a clock that is wrong verifies nothing", -5*time.Minute - time.Second, func(*http.Request) {}, 401, slack.Stale},
		"OldForged":       {"only what Slack signed says that a clock is wrong", time.Hour, func(r *http.Request) { r.Header.Set(hSignature, "v0="+strings.Repeat("0", 64)) }, 401, slack.Unsigned},
		"OldAltered":      {"nor does an old request with other bytes", time.Hour, func(r *http.Request) { r.Body = http.NoBody }, 401, slack.Unsigned},
		"Zeros":           {"no signature at all", 0, func(r *http.Request) { r.Header.Set(hSignature, "v0="+strings.Repeat("0", 64)) }, 401, slack.Unsigned},
		"OtherSecret":     {"signed by somebody else", 0, func(r *http.Request) { r.Header.Set(hSignature, sign("another", r.Header.Get(hTimestamp), nil)) }, 401, slack.Unsigned},
		"WithoutBody":     {"a signature over the time alone", 0, func(r *http.Request) { r.Header.Set(hSignature, sign(secret, r.Header.Get(hTimestamp), nil)) }, 401, slack.Unsigned},
		"EmptySecret":     {"signed with nothing", 0, func(r *http.Request) { r.Header.Set(hSignature, sign("", r.Header.Get(hTimestamp), nil)) }, 401, slack.Unsigned},
		"BodyAltered":     {"one byte more", 0, func(r *http.Request) { r.Body = body(r, func(b []byte) []byte { return append(b, '&') }) }, 401, slack.Unsigned},
		"BodyCut":         {"one byte less", 0, func(r *http.Request) { r.Body = body(r, func(b []byte) []byte { return b[:len(b)-1] }) }, 401, slack.Unsigned},
		"BodyEmpty":       {"no body", 0, func(r *http.Request) { r.Body = http.NoBody }, 401, slack.Unsigned},
		"TimeAltered":     {"the time is signed too", 0, func(r *http.Request) { r.Header.Set(hTimestamp, strconv.FormatInt(time.Now().Unix()+1, 10)) }, 401, slack.Unsigned},
		"NoSignature":     {"the header is missing", 0, func(r *http.Request) { r.Header.Del(hSignature) }, 401, slack.Unsigned},
		"NoTimestamp":     {"the header is missing", 0, func(r *http.Request) { r.Header.Del(hTimestamp) }, 401, slack.Unsigned},
		"NoHeaders":       {"both are missing", 0, func(r *http.Request) { r.Header.Del(hTimestamp); r.Header.Del(hSignature) }, 401, slack.Unsigned},
		"EmptySignature":  {"an empty header", 0, func(r *http.Request) { r.Header.Set(hSignature, "") }, 401, slack.Unsigned},
		"TwoSignatures":   {"of two headers, which one is checked is anybody's guess", 0, func(r *http.Request) { r.Header.Add(hSignature, r.Header.Get(hSignature)) }, 401, slack.Unsigned},
		"TwoTimestamps":   {"of two headers, which one is checked is anybody's guess", 0, func(r *http.Request) { r.Header.Add(hTimestamp, r.Header.Get(hTimestamp)) }, 401, slack.Unsigned},
		"GoodThenForged":  {"a second header behind the good one", 0, func(r *http.Request) { r.Header.Add(hSignature, "v0="+strings.Repeat("0", 64)) }, 401, slack.Unsigned},
		"UpperCase":       {"Slack writes lower case", 0, upper, 401, slack.Unsigned},
		"OtherVersion":    {"a version that is not known", 0, func(r *http.Request) { r.Header.Set(hSignature, "v1="+r.Header.Get(hSignature)[3:]) }, 401, slack.Unsigned},
		"NoVersion":       {"digits alone", 0, func(r *http.Request) { r.Header.Set(hSignature, r.Header.Get(hSignature)[3:]) }, 401, slack.Unsigned},
		"SignatureCut":    {"one digit less", 0, func(r *http.Request) { r.Header.Set(hSignature, r.Header.Get(hSignature)[:66]) }, 401, slack.Unsigned},
		"SignatureLonger": {"two digits more", 0, func(r *http.Request) { r.Header.Set(hSignature, r.Header.Get(hSignature)+"00") }, 401, slack.Unsigned},
		"PlusTime":        {"a sign is no digit", 0, func(r *http.Request) { resign(r, "+"+r.Header.Get(hTimestamp)) }, 401, slack.Unsigned},
		"SpaceTime":       {"a space is no digit", 0, func(r *http.Request) { resign(r, " "+r.Header.Get(hTimestamp)) }, 401, slack.Unsigned},
		"HexTime":         {"another notation", 0, func(r *http.Request) { resign(r, "0x6"+r.Header.Get(hTimestamp)[:3]) }, 401, slack.Unsigned},
		"EndlessTime":     {"a time that fits no clock", 0, func(r *http.Request) { resign(r, strings.Repeat("9", 40)) }, 401, slack.Unsigned},
		"MilliTime":       {"milliseconds are another time", 0, func(r *http.Request) { resign(r, r.Header.Get(hTimestamp)+"000") }, 401, slack.Unsigned},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := newWorld(t)
				r := signed(secret, time.Now().Add(-tt.age), form(w.says(onCall, approveAction).payload(t)))
				tt.change(r)
				if got := w.post(w.handler(secret), r); got != tt.status {
					t.Errorf("%s: status = %d, want %d", tt.reason, got, tt.status)
				}
				if w.count(tt.want) != 1 || len(w.results) != 1 {
					t.Errorf("%s: results = %v, want %s once", tt.reason, w.results, tt.want)
				}
				want := approve.Open
				if tt.want == slack.Recorded {
					want = approve.Approved
				}
				if got := w.stand().State; got != want {
					t.Errorf("%s: the ticket is %q, want %q", tt.reason, got, want)
				}
				log, replies := w.settled()
				contains(t, "the log", log, "result="+string(tt.want))
				if want == approve.Open && len(replies) > 0 {
					t.Errorf("%s: replied %q to nobody knows whom", tt.reason, replies)
				}
			})
		})
	}
}

// body changes what is sent, and leaves the signature as it was.
func body(r *http.Request, change func([]byte) []byte) *readCloser {
	var b bytes.Buffer
	_, _ = b.ReadFrom(r.Body)
	return &readCloser{bytes.NewReader(change(b.Bytes()))}
}

type readCloser struct{ io.Reader }

func (*readCloser) Close() error { return nil }

// resign signs with another time, as somebody who has the secret would.
func resign(r *http.Request, timestamp string) {
	var b bytes.Buffer
	_, _ = b.ReadFrom(r.Body)
	r.Body = &readCloser{bytes.NewReader(b.Bytes())}
	r.Header.Set(hTimestamp, timestamp)
	r.Header.Set(hSignature, sign(secret, timestamp, b.Bytes()))
}

// Within five minutes the same bytes are believed again, and change nothing.
func TestReplayChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWorld(t)
		h, body, at := w.handler(secret), form(w.says(onCall, approveAction).payload(t)), time.Now()
		for range 5 {
			if got := w.post(h, signed(secret, at, body)); got != http.StatusOK {
				t.Errorf("status = %d, want 200", got)
			}
			time.Sleep(time.Minute)
		}
		if got := w.answers(); len(got) != 1 || w.count(slack.Recorded) != 1 || w.count(slack.Refused) != 4 {
			t.Errorf("answers = %q, results = %v, want one recorded and four refused", got, w.results)
		}
	})
}

func TestForgersFillNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWorld(t)
		h := w.handler(secret)
		for range 500 {
			r := signed("guess", time.Now(), form([]byte("{}")))
			if got := w.post(h, r); got != http.StatusUnauthorized {
				t.Fatalf("status = %d, want 401", got)
			}
		}
		log, _ := w.settled()
		if n := strings.Count(log, "result=unsigned"); n != 1 || w.count(slack.Unsigned) != 500 {
			t.Errorf("%d lines and %d counted, want 1 and 500", n, w.count(slack.Unsigned))
		}
	})
}

func TestEmptySecretBelievesNobody(t *testing.T) {
	w, _ := newWorld(t)
	if _, err := w.clicks.Handler(""); err == nil || !strings.Contains(err.Error(), "slack.signingSecretFile") {
		t.Errorf("err = %v, want one that names the file", err)
	}
}
