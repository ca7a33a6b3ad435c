package step_test

import (
	"strings"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/compare"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/step"
)

// missed is a service that has missed its target for a while.
func missed(since time.Duration) step.NoticeFacts {
	return step.NoticeFacts{
		Service: service(), MaxMode: spec.Auto, Now: now,
		State: ledger.Service{
			Name: "checkout", State: compare.Breached, Reason: compare.Burning, Episode: "e7",
			Since: now.Add(-since), EpisodeSince: now.Add(-since), EverMet: true, LastMet: now.Add(-since),
		},
	}
}

func TestNotices(t *testing.T) {
	unknown := func(n *step.NoticeFacts, reason compare.Reason, since time.Duration) {
		n.State.State, n.State.Reason, n.State.Since = compare.Unknown, reason, now.Add(-since)
	}
	decided := func(n *step.NoticeFacts, d gate.Decision) { n.Decision = &d }
	asked := func(how step.Asking, since time.Duration) func(n *step.NoticeFacts) {
		return func(n *step.NoticeFacts) {
			n.State.EpisodeSince, n.Asked = now.Add(-since), how
			n.Tickets = []approve.Ticket{*ticket(approve.Open)}
		}
	}
	cases := map[string]struct {
		why    string
		change func(n *step.NoticeFacts)
		want   string // reason; "" for no page
	}{
		"Early":     {"a breach inside escalateWithin", func(n *step.NoticeFacts) { n.State.EpisodeSince = now.Add(-19 * time.Minute) }, ""},
		"Late":      {"a breach after escalateWithin", func(*step.NoticeFacts) {}, escalate.CannotAct},
		"Storm":     {"one page for all, not one each", func(n *step.NoticeFacts) { n.Storm, n.Grouped = true, true }, ""},
		"StormOver": {"the brake alone tells nobody", func(n *step.NoticeFacts) { n.Storm = true }, escalate.CannotAct},
		"StormOpen": {"a page that is open stays", func(n *step.NoticeFacts) { n.Storm, n.Grouped, n.Open = true, true, true }, escalate.CannotAct},
		"Planned":   {"a drill wakes nobody", func(n *step.NoticeFacts) { n.Planned = "failover-drill" }, ""},
		"NeverMet":  {"a target that nothing meets", func(n *step.NoticeFacts) { n.State.EverMet = false }, escalate.SpecProblem},
		"NeverSeen": {"a query that finds nothing", func(n *step.NoticeFacts) {
			unknown(n, "no-data", 10*time.Minute)
			n.State.EverMet, n.State.LastMet = false, time.Time{}
		}, escalate.SpecProblem},
		"RootPaged": {"one page for one cause", func(n *step.NoticeFacts) {
			n.Dependencies, n.RootsPaged = map[string]compare.State{"db": compare.Breached}, true
		}, ""},
		"Overdue": {"the root of somebody's miss does not wait", func(n *step.NoticeFacts) {
			n.State.EpisodeSince, n.Overdue = now, true
		}, escalate.CannotAct},
		"OverdueBlind": {"nor does one that nobody can see", func(n *step.NoticeFacts) { unknown(n, "no-data", time.Second); n.Overdue = true }, escalate.Blind},
		"UndoHeld": {"harm that stays is told at once", func(n *step.NoticeFacts) {
			n.State.EpisodeSince, n.Harmful = now, harmful()
			n.Decision, n.Proposal = &gate.Decision{Hold: true, Reasons: []gate.Reason{{Code: gate.ReasonFreeze}}}, &propose.Proposal{Undo: true}
		}, escalate.UndoHeld},
		"UndoRefused": {"for good", func(n *step.NoticeFacts) {
			n.State.EpisodeSince, n.Harmful = now, harmful()
			n.Harmful.UndoRefused = "the target no longer holds what we wrote"
		}, escalate.UndoHeld},
		"UndoSent":   {"unless it was taken back", func(n *step.NoticeFacts) { n.State.EpisodeSince, n.Harmful, n.Undo = now, harmful(), harmful() }, ""},
		"UndoComing": {"or is about to be", func(n *step.NoticeFacts) { n.State.EpisodeSince, n.Harmful = now, harmful() }, ""},
		"Oscillation": {"what swings is handed over", func(n *step.NoticeFacts) {
			n.State.EpisodeSince = now
			decided(n, gate.Decision{Verdict: gate.Escalate, Reasons: []gate.Reason{{Code: gate.ReasonMode}, {Code: gate.ReasonOscillation, Text: "it would swing"}}})
		}, escalate.HandedOver},
		"Recovering":     {"what gets better by itself opens no page", func(n *step.NoticeFacts) { n.Assessment.Reason = compare.Recovering }, ""},
		"RecoveringOpen": {"and keeps the one that is open", func(n *step.NoticeFacts) { n.Assessment.Reason, n.Open = compare.Recovering, true }, escalate.CannotAct},
		"WaitingOpen": {"a page that is open goes on naming the root", func(n *step.NoticeFacts) {
			n.Dependencies, n.RootsPaged, n.Open = map[string]compare.State{"db": compare.Breached}, true, true
		}, escalate.DependencyDown},
		"Met":          {"met pages nobody", func(n *step.NoticeFacts) { n.State.State = compare.Met }, ""},
		"Observe":      {"mode observe leaves people alone", func(n *step.NoticeFacts) { n.Service.Remediation.Mode = spec.Observe }, ""},
		"MaxObserve":   {"so does maxMode observe", func(n *step.NoticeFacts) { n.MaxMode = spec.Observe }, ""},
		"ObservePages": {"unless the document says otherwise", func(n *step.NoticeFacts) { n.MaxMode = spec.Observe; n.Service.Remediation.Escalation.Observe = true }, escalate.CannotAct},
		"InFlight":     {"an effect under way is acting", func(n *step.NoticeFacts) { n.InFlight = claimed(execute.Applied) }, ""},
		"InDoubt":      {"one in doubt locks, and nothing else can be done", func(n *step.NoticeFacts) { n.InFlight = claimed(execute.InDoubt) }, escalate.InDoubt},
		"Doubt, early": {"which has its time too", func(n *step.NoticeFacts) {
			n.State.EpisodeSince = now
			n.InFlight = claimed(execute.Started)
		}, ""},
		"Suggest": {"an escalate by mode alone waits for escalateWithin", func(n *step.NoticeFacts) {
			n.State.EpisodeSince = now
			decided(n, gate.Decision{Verdict: gate.Escalate, Reasons: []gate.Reason{{Code: gate.ReasonMode}}})
		}, ""},
		"PolicyEscalates": {"an escalate by policy pages now", func(n *step.NoticeFacts) {
			n.State.EpisodeSince = now
			decided(n, gate.Decision{Verdict: gate.Escalate, Ruling: gate.Ruling{Escalate: []gate.Rule{{Reason: "x"}}}})
		}, escalate.HandedOver},
		"ClassEscalates": {"an escalate by class pages now", func(n *step.NoticeFacts) {
			n.State.EpisodeSince = now
			decided(n, gate.Decision{Verdict: gate.Escalate, Reasons: []gate.Reason{{Code: gate.ReasonClassEscalate, Text: "x"}}})
		}, escalate.HandedOver},
		"ProposerHands": {"the proposer may hand over", func(n *step.NoticeFacts) {
			n.State.EpisodeSince = now
			n.Proposal = &propose.Proposal{Kind: propose.KindEscalate}
		}, escalate.HandedOver},
		"OpenTicket": {"a question without a chat pages at once", func(n *step.NoticeFacts) {
			n.State.EpisodeSince = now
			n.Tickets = []approve.Ticket{*ticket(approve.Open)}
		}, escalate.ApprovalNeeded},
		"TicketShown":     {"who is asked in the channel is not woken too", asked(step.Shown, 19*time.Minute), ""},
		"TicketShownLate": {"nor left to it for longer than escalateWithin", asked(step.Shown, 20*time.Minute), escalate.ApprovalNeeded},
		"TicketShownOverdue": {"nor while the miss of another waits for it", func(n *step.NoticeFacts) {
			asked(step.Shown, 0)(n)
			n.Overdue = true
		}, escalate.ApprovalNeeded},
		"TicketShownOpen": {"a page that is open says what waits", func(n *step.NoticeFacts) {
			asked(step.Shown, 0)(n)
			n.Open = true
		}, escalate.ApprovalNeeded},
		"TicketComing":     {"a card on its way gets its minute", asked(step.BeingAsked, 0), ""},
		"TicketComingLate": {"which is within escalateWithin", asked(step.BeingAsked, 20*time.Minute), escalate.ApprovalNeeded},
		"TicketUnasked":    {"what the channel does not show pages at once", asked(step.Unasked, 0), escalate.ApprovalNeeded},
		"TicketShownHeld": {"a shown question hides nothing else that needs a person", func(n *step.NoticeFacts) {
			asked(step.Shown, 0)(n)
			n.Suspended = map[string]string{"rollback": "two worsened"}
		}, escalate.Suspended},
		"ShownAndExpired": {"a card that nobody answered pages", func(n *step.NoticeFacts) {
			asked(step.Shown, 0)(n)
			n.Tickets[0].State = approve.Expired
		}, escalate.ApprovalExpired},
		"Expired": {"an unanswered question pages", func(n *step.NoticeFacts) {
			n.State.EpisodeSince = now
			n.Tickets = []approve.Ticket{*ticket(approve.Expired)}
		}, escalate.ApprovalExpired},
		"Void": {"an approval that came to nothing pages", func(n *step.NoticeFacts) {
			n.State.EpisodeSince = now
			n.Tickets = []approve.Ticket{*ticket(approve.Void)}
		}, escalate.ApprovalVoid},
		"Denied": {"a denied one waits for escalateWithin", func(n *step.NoticeFacts) {
			n.State.EpisodeSince = now
			n.Tickets = []approve.Ticket{*ticket(approve.Denied)}
		}, ""},
		"Suspended": {"a suspended action pages", func(n *step.NoticeFacts) {
			n.State.EpisodeSince = now
			n.Suspended = map[string]string{"rollback": "two worsened"}
		}, escalate.Suspended},
		"Dependency":  {"a root cause is named", func(n *step.NoticeFacts) { n.Dependencies = map[string]compare.State{"db": compare.Breached} }, escalate.DependencyDown},
		"Blind":       {"unknown for unknownFor", func(n *step.NoticeFacts) { unknown(n, "no-data", 10*time.Minute) }, escalate.Blind},
		"BlindEarly":  {"unknown for less", func(n *step.NoticeFacts) { unknown(n, "no-data", 9*time.Minute) }, ""},
		"TrafficLost": {"traffic that vanished is blind", func(n *step.NoticeFacts) { unknown(n, compare.TrafficLost, time.Hour) }, escalate.TrafficLost},
		"LowTraffic":  {"low traffic is shown, not paged", func(n *step.NoticeFacts) { unknown(n, compare.LowTraffic, time.Hour) }, ""},
		"SourceFault": {"a source's fault is one page for the source", func(n *step.NoticeFacts) { unknown(n, "source-error", time.Hour); n.State.SourceFault = "main" }, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := missed(20 * time.Minute)
			tc.change(&n)
			got := ""
			for _, notice := range step.Notices(n) {
				got = notice.Reason
				if notice.ID != "e7" {
					t.Errorf("id = %q, want the episode's", notice.ID)
				}
				if notice.Why == "" {
					t.Error("a page without words")
				}
			}
			if got != tc.want {
				t.Errorf("%s: reason = %q, want %q", tc.why, got, tc.want)
			}
		})
	}
}

// An open page never goes on saying what is over.
func TestNoticesOfAnOpenPage(t *testing.T) {
	cases := map[string]struct {
		why    string
		change func(n *step.NoticeFacts)
		want   string
	}{
		"Sent":    {"an approved action was sent", func(n *step.NoticeFacts) { n.InFlight = claimed(execute.Applied) }, escalate.Acting},
		"InDoubt": {"its reply was lost", func(n *step.NoticeFacts) { n.InFlight = claimed(execute.InDoubt) }, escalate.InDoubt},
		"Met":     {"met, and not for holdFor yet", func(n *step.NoticeFacts) { n.State.State = compare.Met }, escalate.Recovering},
		"Missed":  {"missed again inside escalateWithin", func(*step.NoticeFacts) {}, escalate.CannotAct},
		"Quiet": {"breached, then unknown by low traffic", func(n *step.NoticeFacts) {
			n.State.State, n.State.Reason = compare.Unknown, compare.LowTraffic
		}, escalate.Blind},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := missed(time.Minute)
			n.Open = true
			n.Tickets = []approve.Ticket{*ticket(approve.Approved)}
			tc.change(&n)
			got := step.Notices(n)
			if len(got) != 1 || got[0].Reason != tc.want || got[0].Why == "" {
				t.Errorf("%s: %+v, want %s", tc.why, got, tc.want)
			}
		})
	}
}

// An effect whose fate nobody can tell pages whatever the service does.
func TestNoticesInDoubt(t *testing.T) {
	n := missed(0)
	n.State.State, n.State.Episode = compare.Met, ""
	n.Doubtful = []ledger.Effect{*claimed(execute.Unknown)}
	got := step.Notices(n)
	if len(got) != 1 || got[0].ID != "in-doubt/checkout:1764385200-600" || got[0].Reason != escalate.InDoubt {
		t.Errorf("notices = %+v, want one for the key", got)
	}
}

func harmful() *ledger.Effect {
	e := claimed(execute.Applied)
	e.Claim.Key, e.Outcome = "checkout:1795922400-600", compare.OutcomeWorsened
	return e
}

// TestUndoOfANeighbour: a service that is met has no episode, and what it did to
// a neighbour must be told all the same.
func TestUndoOfANeighbour(t *testing.T) {
	n := missed(time.Minute)
	n.State.State, n.State.Episode, n.Harmful = compare.Met, "", harmful()
	n.Harmful.UndoRefused = "os:alice denied t12"
	got := step.Notices(n)
	if len(got) != 1 || got[0].Reason != escalate.UndoHeld || !strings.Contains(got[0].Why, "os:alice denied t12") {
		t.Errorf("notices %+v", got)
	}
}

func TestAudience(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(n *step.NoticeFacts)
		want   step.Audience
	}{
		"missed":        {"people on call", func(*step.NoticeFacts) {}, step.OnCall},
		"never met":     {"whoever wrote it", func(n *step.NoticeFacts) { n.State.EverMet, n.State.LastMet = false, time.Time{} }, step.Owners},
		"met before":    {"an edit during a miss takes nobody off the page", func(n *step.NoticeFacts) { n.State.EverMet = false }, step.Everybody},
		"opened before": {"nor does a page change hands", func(n *step.NoticeFacts) { n.State.EverMet, n.State.LastMet, n.Open = false, time.Time{}, true }, step.Everybody},
		"theirs": {"and stays whose it was", func(n *step.NoticeFacts) {
			n.State.EverMet, n.State.LastMet, n.Open, n.OpenFor = false, time.Time{}, true, escalate.SpecProblem
		}, step.Owners},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := missed(time.Hour)
			tc.change(&n)
			got := step.Notices(n)
			if len(got) != 1 || got[0].To != tc.want {
				t.Errorf("%s: %+v", tc.reason, got)
			}
		})
	}
}

// TestRootsAreNamed: the page says what is at the bottom, and the root's page
// who waits.
func TestRootsAreNamed(t *testing.T) {
	n := missed(time.Hour)
	n.Dependencies = map[string]compare.State{"api": compare.Breached}
	n.Roots = map[string]compare.State{"db": compare.Unknown}
	if got := step.Notices(n); len(got) != 1 || got[0].Why != "waits for db, which is unknown" {
		t.Errorf("the dependant's page: %+v", got)
	}
	n = missed(time.Hour)
	n.Waiting = []string{"api", "shop"}
	if got := step.Notices(n); len(got) != 1 || !strings.HasSuffix(got[0].Why, "waiting for it: api, shop") {
		t.Errorf("the root's page: %+v", got)
	}
}

// TestUndoHeldInPlannedWork: what we made worse is none of a drill's business and
// none of a storm's, so people hear of it all the same, in a page of its own.
func TestUndoHeldInPlannedWork(t *testing.T) {
	for name, hide := range map[string]func(*step.NoticeFacts){
		"drill": func(n *step.NoticeFacts) { n.Planned = "failover-drill" },
		"storm": func(n *step.NoticeFacts) { n.Storm, n.Grouped = true, true },
	} {
		n := missed(time.Minute)
		hide(&n)
		n.Harmful = harmful()
		if got := step.Notices(n); len(got) != 0 {
			t.Errorf("%s: %+v before the undo was judged", name, got)
		}
		n.Harmful.UndoRefused = "the target no longer holds what we wrote"
		got := step.Notices(n)
		if len(got) != 1 || got[0].Reason != escalate.UndoHeld || got[0].ID != "undo/"+string(n.Harmful.Claim.Key) {
			t.Errorf("%s: %+v, want one page of the undo", name, got)
		}
	}
}

// TestWhyNamesTheHold: what nothing was decided about is named too, in words.
func TestWhyNamesTheHold(t *testing.T) {
	held := []gate.Reason{{Code: gate.ReasonSilencesUnreadable, Text: "Alertmanager cannot be asked"}, {Code: gate.ReasonCooldown, Text: "sent 1m ago"}}
	spent := []gate.Reason{{Code: step.ReasonWindowSpent, Text: "this window had its proposal"}}
	decided := &gate.Decision{Reasons: []gate.Reason{{Code: gate.ReasonBudgetSpent, Text: "1 left"}}}
	const missedFor = "missed since 11:40:00, and no step is permitted"
	cases := map[string]struct {
		reason   string
		holding  []gate.Reason
		decision *gate.Decision
		want     string
	}{
		"Nothing":  {"a process that has just started knows of none", nil, nil, ""},
		"Hold":     {"the hold and how much more there is", held, nil, ": Alertmanager cannot be asked, and 1 more below"},
		"Newer":    {"the pass is newer than the decision", held[:1], decided, ": Alertmanager cannot be asked"},
		"Waiting":  {"a pass that waits for the next window has the decision's reasons", spent, decided, ": 1 left"},
		"Alone":    {"or its own", spent, nil, ": this window had its proposal"},
		"Wordless": {"a code where there are no words", []gate.Reason{{Code: gate.ReasonFreeze}}, nil, ": freeze"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := missed(20 * time.Minute)
			n.Holding, n.Decision = tc.holding, tc.decision
			got := step.Notices(n)
			if len(got) != 1 || !strings.HasPrefix(got[0].Why, "missed since ") || !strings.HasSuffix(got[0].Why, "and no step is permitted"+tc.want) || len(got[0].Why) != len(missedFor)+len(tc.want) {
				t.Errorf("%s: %+v", tc.reason, got)
			}
		})
	}
	n := missed(20 * time.Minute)
	n.Holding, n.InFlight, n.Open = held, nil, true
	n.State.EpisodeSince = now.Add(-time.Minute)
	if got := step.Notices(n); len(got) != 1 || !strings.Contains(got[0].Why, "Alertmanager cannot be asked") {
		t.Errorf("an open page: %+v", got)
	}
}

// TestWhyOfAnUnaskedQuestion: who gets a page instead of a card can mend the way.
func TestWhyOfAnUnaskedQuestion(t *testing.T) {
	for _, tc := range []struct {
		asked       step.Asking
		fault, want string
	}{
		{step.NobodyAsked, "", ""},
		{step.Shown, "slack: an older fault", ""},
		{step.Unasked, "", "; it comes as a page because no card in the channel asks it"},
		{step.Unasked, "refused: not_in_channel", "; it comes as a page because its card could not be shown: refused: not_in_channel"},
	} {
		n := missed(20 * time.Minute)
		n.Tickets, n.Asked, n.AskFault = []approve.Ticket{*ticket(approve.Open)}, tc.asked, tc.fault
		got := step.Notices(n)
		if len(got) != 1 || !strings.HasSuffix(got[0].Why, tc.want) || tc.want == "" && strings.Contains(got[0].Why, "it comes as a page") {
			t.Errorf("%v %q: %+v", tc.asked, tc.fault, got)
		}
	}
}
