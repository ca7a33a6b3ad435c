package web_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// TestCardOfAnApproval: people find the card from the list, or see why there is
// none.
func TestCardOfAnApproval(t *testing.T) {
	m := approve.Message{Channel: "C1", ID: "1.1", Link: "https://chat.example/1"}
	gone := m
	gone.Gone = true
	cases := map[string]struct {
		reason string
		posted *approve.Posted
		want   *web.Card
	}{
		"None":    {"nothing was posted", nil, nil},
		"Begun":   {"it may stand there", &approve.Posted{Begun: time.Unix(1, 0)}, &web.Card{State: "posting"}},
		"Shown":   {"it stands there", &approve.Posted{Messages: []approve.Message{gone, m}}, &web.Card{Channel: "C1", Link: m.Link, State: "shown"}},
		"Failed":  {"it was refused", &approve.Posted{Failures: 1, LastError: "not_in_channel"}, &web.Card{State: "failed", LastError: "not_in_channel"}},
		"Deleted": {"somebody deleted it", &approve.Posted{Messages: []approve.Message{gone}}, &web.Card{Channel: "C1", Link: m.Link, State: "deleted"}},
		"Closed":  {"it is over", &approve.Posted{Messages: []approve.Message{m}, Closed: true}, &web.Card{Channel: "C1", Link: m.Link, State: "closed"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := world(t)
			if v.State.Cards["t10"] = tc.posted; tc.posted == nil {
				delete(v.State.Cards, "t10")
			}
			got := web.Approvals(v, web.Filter{}).Items[0].Card
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
