package web_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// TestAcknowledgedPages: a page says who took it, where and when, wherever that
// was; and a heartbeat, which nobody has to read, is not among the pages.
func TestAcknowledgedPages(t *testing.T) {
	for _, via := range []string{"slack", "pd", "cli", "web"} {
		v := world(t)
		for i, d := range []ledger.Draft{
			{Kind: ledger.KindAck, Service: "checkout", Body: ledger.Ack{Page: "e3", By: "slack:T0123456789/U0123456789", Via: via}},
			{Kind: ledger.KindPage, Body: escalate.NewHeartbeat("oncall", time.Hour, start)},
		} {
			e, err := ledger.Link(v.State.Head, start.Add(time.Duration(30+i)*time.Minute), d)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.State.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		list := web.Pages(v, web.Filter{})
		if len(list.Items) != 1 || list.Items[0].ID != "e3" || list.Items[0].State != "acked" {
			t.Fatalf("the pages are %+v", list.Items)
		}
		raw, err := json.Marshal(list.Items[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"ackedBy":"slack:T0123456789/U0123456789"`, `"ackedVia":"` + via + `"`, `"ackedAt":"` + start.Add(30*time.Minute).Format(time.RFC3339) + `"`} {
			if !strings.Contains(string(raw), want) {
				t.Errorf("the page does not say %s: %s", want, raw)
			}
		}
	}
}
