package reconcile_test

import (
	"errors"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// TestCardsOfABadChannelGrowSlowly: a channel that never does what it is asked makes
// few entries in an hour, whether it fails or asks each time to wait a moment.
func TestCardsOfABadChannelGrowSlowly(t *testing.T) {
	answers := map[string]error{
		"fails": errors.New("HTTP 500"), "wait a second": &approve.Limited{After: time.Second},
		"wait a minute": &approve.Limited{After: time.Minute}, "wait an hour": &approve.Limited{After: time.Hour},
	}
	for name, answer := range answers {
		for _, op := range []string{"post", "look", "update", "say"} {
			t.Run(name+"/"+op, func(t *testing.T) {
				w, ch := boarded(t)
				for i := range w.set.Services {
					w.set.Services[i].Remediation.ApprovalFor = 3 * time.Hour
				}
				if op == "post" {
					ch.failing(op, answer)
				}
				asked := w.asks()
				ch.failing(op, answer)
				if op == "update" || op == "say" {
					w.said(asked, false)
				}
				before := w.kinds()[ledger.KindCard]
				w.run(time.Hour)
				if n := w.kinds()[ledger.KindCard] - before; n < 10 || n > 60 {
					t.Errorf("%d entries of the card in an hour", n)
				}
				if n := ch.called("post"); n > 20 {
					t.Errorf("%d posts in an hour, each of which may stand there", n)
				}
			})
		}
	}
}
