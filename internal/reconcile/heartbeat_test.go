package reconcile_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// shows compares the metrics of receivers with their text.
func shows(t *testing.T, reg *prometheus.Registry, name string, want map[string]float64) {
	t.Helper()
	text := fmt.Sprintf("# TYPE %s gauge\n", name)
	names := make([]string, 0, len(want))
	for receiver := range want {
		names = append(names, receiver)
	}
	slices.Sort(names)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			text = fmt.Sprintf("# HELP %s %s\n", name, f.GetHelp()) + text
		}
	}
	for _, receiver := range names {
		text += fmt.Sprintf("%s{receiver=%q} %g\n", name, receiver, want[receiver])
	}
	if err := testutil.GatherAndCompare(reg, strings.NewReader(text), name); err != nil {
		t.Error(err)
	}
}

// TestHeartbeat: a sign of life takes the way of pages, at the start and in each
// interval, is tried again like a page, and is none.
func TestHeartbeat(t *testing.T) {
	w, reg := prepare(t), prometheus.NewRegistry()
	w.cfg.Receivers[0].Heartbeat = 10 * time.Minute
	w.options = func(o *reconcile.Options) { o.Registerer = reg }
	w.silences = func(string) ([]gate.Hold, error) { return []gate.Hold{{ID: "all"}}, nil }
	w.start()
	began := w.now
	w.run(30 * time.Minute)
	beats := func() int { w.pager.mu.Lock(); defer w.pager.mu.Unlock(); return len(w.pager.sent) }
	if n := beats(); n != 3 {
		t.Errorf("%d heartbeats in half an hour", n)
	}
	if p := w.pager.sent[0]; p.ID != "heartbeat/pager" || p.Reason != escalate.Heartbeat || p.Severity != escalate.SeverityNone {
		t.Errorf("it is %+v", p)
	}
	if n := w.kinds(); n[ledger.KindPage] != 1 || n[ledger.KindDelivery] != 1 {
		t.Errorf("%d pages and %d deliveries were recorded", n[ledger.KindPage], n[ledger.KindDelivery])
	}
	shows(t, reg, "setpoint_heartbeat_timestamp_seconds", map[string]float64{"pager": float64(began.Add(20 * time.Minute).Unix())})
	shows(t, reg, "setpoint_heartbeat_interval_seconds", map[string]float64{"pager": 600})
	shows(t, reg, "setpoint_pages_open", nil)

	w.pager.fail = errors.New("401 unauthorized")
	w.run(5 * time.Minute)
	shows(t, reg, "setpoint_heartbeat_timestamp_seconds", map[string]float64{"pager": float64(began.Add(20 * time.Minute).Unix())})
	shows(t, reg, "setpoint_receiver_down", map[string]float64{"pager": 1})
	w.pager.fail = nil
	w.run(5 * time.Minute)
	shows(t, reg, "setpoint_receiver_down", map[string]float64{"pager": 0})
	if n := beats(); n != 4 {
		t.Errorf("%d heartbeats, the last one late", n)
	}

	reg = prometheus.NewRegistry()
	w.restart()
	w.run(time.Minute)
	if n := beats(); n != 5 {
		t.Errorf("%d heartbeats: a start does not try the way", n)
	}
	reg = prometheus.NewRegistry()
	w.cfg.Receivers[0].Heartbeat = 0
	w.restart()
	w.run(20 * time.Minute)
	if n := beats(); n != 5 || w.kinds()[ledger.KindPageEnd] != 1 {
		t.Errorf("%d messages after the last heartbeat", n-5)
	}
}

// TestHeartbeatOfReplicas: of two processes one sends.
func TestHeartbeatOfReplicas(t *testing.T) {
	w := manyOf(t, 1, nil)
	w.cfg.Receivers[0].Heartbeat = 10 * time.Minute
	j := newJournal(w, "pager")
	rs := replicasOf(w, 2, nil, inMemory(w), j)
	rs.run(60 * time.Minute)
	if n := len(j.pages); n != 6 {
		t.Errorf("%d heartbeats in an hour", n)
	}
	rs.agree()
}

// TestReceiverDown: of a receiver that takes nothing the others are told, with what
// it says, until it has taken something for five minutes.
func TestReceiverDown(t *testing.T) {
	broken := map[string]float64{}
	w := manyOf(t, 1, broken)
	first, second := newJournal(w, "first"), newJournal(w, "second")
	w.cfg.Receivers = []config.Receiver{{Name: "first", Heartbeat: 10 * time.Minute}, {Name: "second"}}
	rs := replicasOf(w, 2, broken, inMemory(w), first, second)
	rs.run(5 * time.Minute)
	first.set(down)
	rs.run(15 * time.Minute)
	if got := second.told("receiver/first"); got != "open" {
		t.Fatalf("the second was told %q", got)
	}
	p := second.pages[0]
	if p.Reason != escalate.ReceiverDown || !strings.Contains(p.Summary, "receiver first takes no pages: the connection is down") || len(first.of("receiver/first")) != 0 {
		t.Errorf("%+v; the first was told %v", p, first.of("receiver/first"))
	}
	first.set(well)
	rs.run(7 * time.Minute)
	if got := second.told("receiver/first"); got != "open" {
		t.Errorf("within five minutes the second was told %q", got)
	}
	rs.run(4 * time.Minute)
	if got := second.told("receiver/first"); got != "open end" || len(second.again)+len(first.again) != 0 {
		t.Errorf("the second was told %q; again: %v %v", got, first.again, second.again)
	}
	rs.agree()
}
