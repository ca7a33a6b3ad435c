package faultproxy_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/execute/webhook"
	"github.com/setpoint-dev/setpoint/internal/lab/faultproxy"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func scale(url string) spec.Action {
	lo, hi := 3.0, 20.0
	return spec.Action{
		Name: "scale", Uses: webhook.Uses, Class: spec.ClassAuto, Reversal: spec.Restore,
		Target:  spec.Target{URL: url + "/checkout", StatusURL: url + "/checkout"},
		Timeout: 10 * time.Second, MaxLateness: 30 * time.Second, Settle: time.Minute,
		Parameters: []spec.Parameter{{Name: "replicas", Type: spec.Integer, Minimum: &lo, Maximum: &hi}},
	}
}

// bench is the executor, the proxy and the actuator behind it.
type bench struct {
	proxy    *faultproxy.Proxy
	actuator *executetest.Actuator
	executor *webhook.Executor
	action   spec.Action
}

func newBench(t *testing.T, dedup bool) bench {
	t.Helper()
	a, err := executetest.NewActuator(executetest.ActuatorOptions{
		State: map[string]any{"replicas": 4}, Dedup: dedup, Now: func() time.Time { return noon },
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close)
	p := proxy(t, srv.Listener.Addr().String(), faultproxy.Options{})
	url := "http://" + p.Addr()
	e, err := webhook.New(webhook.Options{Allow: []string{url + "/"}, Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	return bench{proxy: p, actuator: a, executor: e, action: scale(url)}
}

// send executes one permit, of the window that begins so much later.
func (b bench) send(t *testing.T, later time.Duration) execute.Receipt {
	t.Helper()
	p := executetest.Permit(t, b.action, propose.Parameters{"replicas": int64(6)}, noon)
	if later > 0 {
		p = executetest.Permit(t, b.action, propose.Parameters{"replicas": int64(6)}, noon.Add(later))
	}
	r, err := b.executor.Execute(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What the executor says of each fault, and what really happened. Failed takes
// a proof that nothing was delivered; applied takes a whole answer.
func TestWebhookThroughEachFault(t *testing.T) {
	const inDoubt, applied = execute.InDoubt, execute.Applied
	type row struct {
		reason string
		// want is the effect of the receipt.
		want execute.Effect
		// requests and effects are what the actuator's journal holds.
		requests, effects int
		// slow: the fault lasts longer than the action's timeout.
		slow, dedup bool
	}
	cases := map[string]row{
		"pass":                         {reason: "delivered and answered", want: applied, requests: 1, effects: 1},
		"refuse":                       {reason: "nobody was connected, so nothing was delivered", want: execute.Failed},
		"delay-connect,delay=10ms":     {reason: "late is not lost", want: applied, requests: 1, effects: 1},
		"delay-connect,delay=1h":       {reason: "the request was written and may still arrive", want: inDoubt, slow: true},
		"delay-reply,delay=10ms":       {reason: "late is not lost", want: applied, requests: 1, effects: 1},
		"delay-reply,delay=1h":         {reason: "the deadline proves nothing", want: inDoubt, requests: 1, effects: 1, slow: true},
		"cut-request":                  {reason: "the first byte was written", want: inDoubt},
		"cut-request,fin":              {reason: "an end in order is no answer", want: inDoubt},
		"cut-request,bytes=40":         {reason: "half a head", want: inDoubt},
		"cut-request,bytes=ALL-1":      {reason: "all but the last byte", want: inDoubt},
		"cut-request,bytes=ALL":        {reason: "all of it, and no answer", want: inDoubt, requests: 1, effects: 1},
		"cut-reply":                    {reason: "done, and not one byte of the answer", want: inDoubt, requests: 1, effects: 1},
		"cut-reply,fin":                {reason: "an end in order is no answer", want: inDoubt, requests: 1, effects: 1},
		"cut-reply,bytes=15,fin":       {reason: "a status line is no answer", want: inDoubt, requests: 1, effects: 1},
		"cut-reply,bytes=130":          {reason: "a head is no answer", want: inDoubt, requests: 1, effects: 1},
		"blackhole":                    {reason: "silence proves nothing", want: inDoubt, slow: true},
		"blackhole,match=\"digest\"":   {reason: "nor does silence in the middle", want: inDoubt, slow: true},
		"slow-request,delay=10us":      {reason: "slow is not lost", want: applied, requests: 1, effects: 1},
		"slow-request,delay=1h":        {reason: "some of it was written", want: inDoubt, slow: true},
		"slow-reply,delay=10us":        {reason: "slow is not lost", want: applied, requests: 1, effects: 1},
		"slow-reply,delay=1h":          {reason: "the deadline is for the whole answer", want: inDoubt, requests: 1, effects: 1, slow: true},
		"status":                       {reason: "a proxy's 503 does not say that nothing happened", want: inDoubt},
		"status,status=404":            {reason: "a refusal is one, whoever says it", want: execute.Failed},
		"status-after,status=503":      {reason: "the same 503, and it happened", want: inDoubt, requests: 1, effects: 1},
		"status-after,status=504":      {reason: "a gateway's deadline proves nothing", want: inDoubt, requests: 1, effects: 1},
		"drop-reply":                   {reason: "done and not said", want: inDoubt, requests: 1, effects: 1},
		"drop-reply,fin":               {reason: "in order", want: inDoubt, requests: 1, effects: 1},
		"truncate,bytes=5":             {reason: "half an answer may have said failed", want: inDoubt, requests: 1, effects: 1},
		"truncate,bytes=5,fin":         {reason: "in order", want: inDoubt, requests: 1, effects: 1},
		"truncate,fin":                 {reason: "a 200 alone may have said failed", want: inDoubt, requests: 1, effects: 1},
		"wrong-length,length=400":      {reason: "the rest is missing", want: inDoubt, requests: 1, effects: 1},
		"wrong-length,length=5":        {reason: "the object does not end", want: inDoubt, requests: 1, effects: 1},
		"no-length":                    {reason: "the whole object came", want: applied, requests: 1, effects: 1},
		"no-length,bytes=5":            {reason: "the object does not end, though the body does", want: inDoubt, requests: 1, effects: 1},
		"duplicate":                    {reason: "sent once, doubled on the way: the journal tells", want: applied, requests: 2, effects: 2},
		"duplicate,last":               {reason: "likewise", want: applied, requests: 2, effects: 2},
		"duplicate with dedup":         {reason: "an actuator that dedups does it once", want: applied, requests: 2, effects: 1, dedup: true},
		"duplicate,last with dedup":    {reason: "409 is done with that key", want: applied, requests: 2, effects: 1, dedup: true},
		"cut-request,match=\"replicas": {reason: "cut where the body begins to matter", want: inDoubt},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tc.dedup)
			fault, _, _ := strings.Cut(name, " with ")
			if strings.Contains(fault, "ALL") {
				size := b.wire(t)
				fault = strings.ReplaceAll(fault, "ALL-1", fmt.Sprint(size-1))
				fault = strings.ReplaceAll(fault, "ALL", fmt.Sprint(size))
			}
			set(t, b.proxy, fault)
			if tc.slow {
				b.action.Timeout = 150 * time.Millisecond
			}
			before, seen := len(b.proxy.Log()), len(b.actuator.Journal())
			if r := b.send(t, 0); r.Effect != tc.want {
				t.Errorf("%s: %s (%s), want %s", tc.reason, r.Effect, r.Detail, tc.want)
			}
			soon(t, "the journal", func() bool { return len(b.actuator.Journal()) >= seen+tc.requests })
			if n := len(b.proxy.Log()) - before; n > 1 || n == 0 && fault != "refuse" {
				t.Errorf("%s: the executor made %d connections", tc.reason, n)
			}
			b.proxy.Cut() // What was still on its way is over.
			rs := b.actuator.Journal()[seen:]
			effects := len(slices.DeleteFunc(slices.Clone(rs), func(r executetest.Record) bool { return !r.Applied }))
			if len(rs) != tc.requests || effects != tc.effects {
				t.Errorf("%s: %d requests and %d effects, want %d and %d", tc.reason, len(rs), effects, tc.requests, tc.effects)
			}
		})
	}
}

// wire is how many bytes the request of this bench has, learnt from another
// window's, whose key is as long.
func (b bench) wire(t *testing.T) int {
	t.Helper()
	b.send(t, time.Hour)
	return ended(t, b.proxy, 1)[0].FromClient
}

// A connection that is reset at once may fail before or after the first byte;
// what is certain is that it is not taken for done.
func TestWebhookReset(t *testing.T) {
	b := newBench(t, false)
	set(t, b.proxy, "reset")
	if r := b.send(t, 0); r.Effect != execute.Failed && r.Effect != execute.InDoubt {
		t.Errorf("%+v", r)
	}
	if n := len(b.actuator.Journal()); n != 0 {
		t.Errorf("the actuator saw %d requests", n)
	}
}

// An old answer is believed, as a lie is: only measurement can tell, and the
// status of the key, which is asked past the proxy here.
func TestWebhookReplay(t *testing.T) {
	b := newBench(t, false)
	b.send(t, time.Hour)
	set(t, b.proxy, "replay")
	if r := b.send(t, 0); r.Effect != execute.Applied {
		t.Errorf("%+v", r)
	}
	if n := len(b.actuator.Journal()); n != 1 {
		t.Errorf("the actuator saw %d requests, want the first only", n)
	}
	set(t, b.proxy, "pass")
	p := executetest.Permit(t, b.action, propose.Parameters{"replicas": int64(6)}, noon)
	if o := b.executor.Observe(t.Context(), b.action, p.Key()); !o.Known || o.KeyKnown {
		t.Errorf("the status says %+v, want that the key is not known", o)
	}
}

// A status through a fault is no answer unless it came whole, and asking
// changes nothing.
func TestObserveThroughEachFault(t *testing.T) {
	cases := map[string]bool{
		"pass": true, "delay-reply,delay=5ms": true, "slow-reply,delay=10us": true, "no-length": true, "duplicate": true,
		"refuse": false, "reset": false, "cut-request": false, "cut-reply,bytes=60": false, "blackhole": false,
		"status": false, "status-after": false, "drop-reply": false, "truncate,bytes=5,fin": false,
		"wrong-length,length=400": false, "wrong-length,length=5": false, "no-length,bytes=5": false,
	}
	for fault, known := range cases {
		t.Run(fault, func(t *testing.T) {
			b := newBench(t, false)
			b.send(t, 0)
			set(t, b.proxy, fault)
			if fault == "blackhole" {
				b.action.Timeout = 100 * time.Millisecond
			}
			p := executetest.Permit(t, b.action, propose.Parameters{"replicas": int64(6)}, noon)
			o := b.executor.Observe(t.Context(), b.action, p.Key())
			if o.Known != known || o.KeyKnown != known {
				t.Errorf("%+v, want known %t", o, known)
			}
			if n := len(b.actuator.Journal()); n != 1 {
				t.Errorf("asking left %d requests", n)
			}
		})
	}
}
