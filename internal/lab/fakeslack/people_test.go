package fakeslack_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"github.com/setpoint-dev/setpoint/internal/lab/fakeslack"
)

// desk takes clicks over HTTP as an app does, with slack-go's own verifier.
type desk struct {
	mu       sync.Mutex
	clicks   []slack.InteractionCallback
	refusals []error
}

func (d *desk) seen() ([]slack.InteractionCallback, []error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clicks, d.refusals
}

// realClock is what slack-go's verifier reads.
func realClock(o *fakeslack.Options) { o.Now = time.Now }

// newDesk answers good clicks with the status, after the wait.
func newDesk(t *testing.T, w *world, status int, wait time.Duration) *desk {
	t.Helper()
	d := &desk{}
	ended := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		click, err := check(req.Header, body)
		d.mu.Lock()
		if err == nil {
			d.clicks = append(d.clicks, click)
		} else {
			d.refusals = append(d.refusals, err)
		}
		d.mu.Unlock()
		if err != nil {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		select {
		case <-time.After(wait):
		case <-ended:
		}
		rw.WriteHeader(status)
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(ended) })
	w.slack.SetInteractivity(srv.URL + "/slack/interactivity")
	return d
}

func verify(h http.Header, body []byte, secret string) error {
	v, err := slack.NewSecretsVerifier(h, secret)
	if err != nil {
		return err
	}
	if _, err := v.Write(body); err != nil {
		return err
	}
	return v.Ensure()
}

func check(h http.Header, body []byte) (slack.InteractionCallback, error) {
	if err := verify(h, body, fakeslack.SigningSecret); err != nil {
		return slack.InteractionCallback{}, err
	}
	req := &http.Request{Method: http.MethodPost, Header: h, Body: io.NopCloser(strings.NewReader(string(body)))}
	return slack.InteractionCallbackParse(req)
}

// told is what of a click matters to an app.
type told struct {
	Type, Team, User, UserTeam, Channel, TS, Action, Block, Value, Text string
}

func tell(c slack.InteractionCallback) told {
	a := c.ActionCallback.BlockActions[0]
	return told{
		Type: string(c.Type), Team: c.Team.ID, User: c.User.ID, UserTeam: c.User.TeamID, Channel: c.Channel.ID,
		TS: c.Container.MessageTs, Action: a.ActionID, Block: a.BlockID, Value: a.Value,
		Text: c.Message.Blocks.BlockSet[0].(*slack.SectionBlock).Text.Text,
	}
}

// TestClickOverHTTP clicks in every way that an app has to expect.
func TestClickOverHTTP(t *testing.T) {
	t.Parallel()
	plain := told{
		Type: "block_actions", Team: fakeslack.DefaultTeam, User: "U1", UserTeam: fakeslack.DefaultTeam, Channel: ops,
		Action: "approve", Block: "setpoint/T1/digest", Value: "T1 digest", Text: "second",
	}
	changed := func(f func(*told)) []told {
		c := plain
		f(&c)
		return []told{c}
	}
	cases := map[string]struct {
		reason string
		change func(*fakeslack.Press)
		want   []told
		error  error
	}{
		"Plain":     {"A click carries the present button.", func(*fakeslack.Press) {}, []told{plain}, nil},
		"Twice":     {"The same bytes come twice.", func(p *fakeslack.Press) { p.Times = 2 }, []told{plain, plain}, nil},
		"Stale":     {"A screen still shows an earlier edit.", func(p *fakeslack.Press) { p.Back = 1 }, changed(func(c *told) { c.Value, c.Block, c.Text = "T0 digest", "setpoint/T0/digest", "first" }), nil},
		"Stranger":  {"Somebody of another team clicks.", func(p *fakeslack.Press) { p.User, p.Team = "U9", "T9" }, changed(func(c *told) { c.User, c.UserTeam = "U9", "T9" }), nil},
		"Workspace": {"It was clicked in another workspace.", func(p *fakeslack.Press) { p.Workspace = "T9" }, changed(func(c *told) { c.Team = "T9" }), nil},
		"Forged": {"The value is another one, and signed.", func(p *fakeslack.Press) {
			p.Forge = func(m map[string]any) { m["actions"].([]any)[0].(map[string]any)["value"] = "T9 x" }
		}, changed(func(c *told) { c.Value = "T9 x" }), nil},
		"Tampered": {"Bytes were changed after they were signed.", func(p *fakeslack.Press) {
			p.Tamper = func(r fakeslack.Request) fakeslack.Request {
				r.Body = []byte(strings.Replace(string(r.Body), "T1", "T2", 1))
				return r
			}
		}, nil, slack.ErrInvalidSignature},
		"Old":    {"It was signed six minutes ago.", func(p *fakeslack.Press) { p.SignedAt = time.Now().Add(-6 * time.Minute) }, nil, slack.ErrExpiredTimestamp},
		"Future": {"It was signed in the future.", func(p *fakeslack.Press) { p.SignedAt = time.Now().Add(6 * time.Minute) }, nil, slack.ErrExpiredTimestamp},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, realClock)
			d := newDesk(t, w, http.StatusOK, 0)
			ts := w.post(t, card("T0", "first"))
			if _, _, _, err := w.api.UpdateMessageContext(t.Context(), ops, ts, card("T1", "second")); err != nil {
				t.Fatal(err)
			}
			p := fakeslack.Press{User: "U1", Channel: ops, TS: ts, Action: "approve"}
			tc.change(&p)
			o, err := w.slack.Press(soon(t), p)
			if err != nil {
				t.Fatal(err)
			}
			if ok := tc.error == nil; (o.Shown == fakeslack.ShownOK) != ok || o.Via != fakeslack.ViaHTTP {
				t.Errorf("%s outcome %+v", tc.reason, o)
			}
			clicks, refusals := d.seen()
			var got []told
			for _, c := range clicks {
				got = append(got, tell(c))
			}
			for i := range tc.want {
				tc.want[i].TS = ts
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if tc.error != nil && (len(refusals) != 1 || !errors.Is(refusals[0], tc.error)) {
				t.Errorf("%s refused with %v, want %v", tc.reason, refusals, tc.error)
			}
		})
	}
}

// TestShown: the person sees a warning for all but a 200 in time.
func TestShown(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		status int
		wait   time.Duration
		want   string
	}{
		"OK":         {200, 0, fakeslack.ShownOK},
		"Slow":       {200, time.Minute, fakeslack.ShownWarning},
		"NoContent":  {204, 0, fakeslack.ShownWarning},
		"Refused":    {401, 0, fakeslack.ShownWarning},
		"Failed":     {500, 0, fakeslack.ShownWarning},
		"Redirected": {302, 0, fakeslack.ShownWarning},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := []func(*fakeslack.Options){realClock}
			if tc.wait > 0 {
				change = append(change, impatient)
			}
			w := newWorld(t, change...)
			newDesk(t, w, tc.status, tc.wait)
			ts := w.post(t, card("T1", "words"))
			o, err := w.slack.Click(soon(t), "U1", ops, ts, "approve")
			if err != nil || o.Shown != tc.want {
				t.Errorf("got %+v, %v, want %s", o, err, tc.want)
			}
			if tc.wait > 0 && o.Error == "" {
				t.Error("it does not say that there was no answer in time")
			}
		})
	}
}

// TestNotThere: nobody can click what is not there.
func TestNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ts := w.post(t, card("T1", "words"))
	cases := map[string]fakeslack.Press{
		"Message":  {Channel: ops, TS: "1.0", Action: "approve"},
		"Channel":  {Channel: "C404", TS: ts, Action: "approve"},
		"Button":   {Channel: ops, TS: ts, Action: "settle"},
		"Earlier":  {Channel: ops, TS: ts, Action: "approve", Back: 1},
		"Backward": {Channel: ops, TS: ts, Action: "approve", Back: -1},
	}
	for name, p := range cases {
		if _, err := w.slack.Press(soon(t), p); !errors.Is(err, fakeslack.ErrNoButton) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	w.slack.Delete(ops, ts)
	if _, err := w.slack.Click(soon(t), "U1", ops, ts, "approve"); !errors.Is(err, fakeslack.ErrNoButton) {
		t.Errorf("deleted: got %v", err)
	}
	o, err := w.slack.Press(soon(t), fakeslack.Press{User: "U1", Channel: ops, TS: ts, Action: "approve", Back: 1})
	if err != nil || o.Shown != fakeslack.ShownWarning {
		t.Errorf("a screen that does not know of the deletion: %+v, %v", o, err)
	}
	if _, err := w.slack.Press(soon(t), fakeslack.Press{User: "U1", Channel: ops, TS: ts, Action: "approve", Back: 1, Via: fakeslack.ViaHTTP}); err == nil {
		t.Error("a click over HTTP without a URL has nowhere to go")
	}
}

// TestResponseURL: what an app answers to a click's URL is seen, five times at
// most and for half an hour.
func TestResponseURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *fakeslack.Options) { o.Patience = time.Millisecond })
	ts := w.post(t, card("T1", "words"))
	press := func() string {
		var to string
		p := fakeslack.Press{User: "U1", Channel: ops, TS: ts, Action: "approve", Forge: func(m map[string]any) { to = m["response_url"].(string) }}
		if _, err := w.slack.Press(soon(t), p); err != nil {
			t.Fatal(err)
		}
		return to
	}
	say := func(to, text string, kind slack.MsgOption) error {
		_, _, err := w.api.PostMessageContext(t.Context(), "", slack.MsgOptionText(text, false), kind)
		return err
	}
	to := press()
	if err := say(to, "not yours", slack.MsgOptionResponseURL(to, slack.ResponseTypeEphemeral)); err != nil {
		t.Fatal(err)
	}
	if e := w.slack.Ephemerals(ops); len(e) != 1 || e[0].User != "U1" || e[0].Text != "not yours" {
		t.Errorf("ephemerals %+v", e)
	}
	if err := say(to, "done", slack.MsgOptionReplaceOriginal(to)); err != nil {
		t.Fatal(err)
	}
	if m := w.slack.Messages(ops)[0]; m.Text != "done" || len(m.Buttons) != 0 {
		t.Errorf("the message %+v", m)
	}
	for range 3 {
		if err := say(to, "more", slack.MsgOptionResponseURL(to, slack.ResponseTypeInChannel)); err != nil {
			t.Fatal(err)
		}
	}
	if err := say(to, "more", slack.MsgOptionResponseURL(to, slack.ResponseTypeInChannel)); err == nil {
		t.Error("a sixth answer was taken")
	}
	if n := len(w.slack.Messages(ops)); n != 4 {
		t.Errorf("%d messages, want 4", n)
	}
	ts = w.post(t, card("T2", "words"))
	late := press()
	w.pass(31 * time.Minute)
	if err := say(late, "late", slack.MsgOptionResponseURL(late, slack.ResponseTypeEphemeral)); err == nil {
		t.Error("an answer after half an hour was taken")
	}
}
