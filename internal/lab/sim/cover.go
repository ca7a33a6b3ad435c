package sim

import (
	"maps"
	"slices"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// coverage counts how often a state was reached, by name.
type coverage map[string]int64

// interesting are the states that a run must reach, each with what it means.
//
//nolint:funlen // a table
func interesting() [][2]string {
	return [][2]string{
		{"claimed", "a key was claimed"},
		{"claimed by a ticket", "a key was claimed because people approved"},
		{"started", "an effect was started"},
		{"effect applied", "the actuator answered that it did it"},
		{"effect applied-with-error", "the actuator did it and complained"},
		{"effect failed", "the actuator refused, or nothing was sent"},
		{"effect no-op", "there was nothing to do"},
		{"effect not-now", "the actuator could not do it now"},
		{"effect in-doubt", "no answer came in time"},
		{"settled as landed", "the actuator was asked later and had done it"},
		{"not landed, proved after the horizon", "the actuator was asked later and had not; nothing came after"},
		{"settled as unknown", "the actuator did not answer about the key: a person is told"},
		{"settled by a person", "a named person said what became of it"},
		{"settlement lost", "two replicas settled one effect, one was first"},
		{"receipt lost to a settlement", "an answer came after somebody had settled it"},
		{"claim lost", "two replicas claimed, one was first"},
		{"two replicas in one window", "two replicas held a permit for one key"},
		{"asked by another replica", "the proposer was asked once for two replicas"},
		{"ticket lost to another replica", "people were asked once for two replicas"},
		{"void by second gate", "the world changed between claim and start"},
		{"void by second gate: permit-expired", "the permit ran out between claim and start"},
		{"void by second gate: freeze", "people froze between claim and start"},
		{"void by second gate: unknown", "measurement was lost between claim and start"},
		{"void by second gate: not-breached", "the service recovered between claim and start"},
		{"void by second gate: documents-changed", "the documents changed between claim and start"},
		{"void by second gate: policy-fault", "the policy broke between claim and start"},
		{"void by second gate: clocks-apart", "a clock was set between claim and start"},
		{"expired claim voided", "a claim that nobody started was ended by whoever came by"},
		{"void lost", "a claim was ended twice, once counted"},
		{"start lost", "a claim was void or denied before it was started"},
		{"denied between claim and start", "a person's no still stopped it"},
		{"permit expired at the last look", "a process was stopped for longer than a permit lives"},
		{"frozen at the last look", "a freeze file stopped it after started"},
		{"documents changed at the last look", "a reload stopped it after started"},
		{"crash between asked and proposal", "the question was lost, and not asked again"},
		{"crash between claim and start", "the window was lost, the charge came back"},
		{"crash between start and send", "started, and nothing was sent"},
		{"crash between send and receipt", "sent, and nobody heard the answer"},
		{"append not written", "the store refused an entry"},
		{"append written, answer lost", "the store wrote an entry and did not say so"},
		{"append on an old position", "a plan saw entries that its replica did not know"},
		{"request lost", "a request never arrived"},
		{"request late", "a request arrived after the sender gave up"},
		{"request delivered twice", "the network repeated a request"},
		{"reply lost", "it was done and the answer was lost"},
		{"no answer about a key", "the actuator did not answer when asked about a key"},
		{"proposal late", "a proposal was judged on the next measurement"},
		{"ticket opened", "people were asked"},
		{"ticket expired", "nobody answered in time"},
		{"ticket withdrawn", "it recovered before an answer"},
		{"ticket void", "an approved ticket could not be executed any more"},
		{"approved ticket refused", "policy or a floor refused what people had approved"},
		{"answer approves", "a person said yes"},
		{"answer denies", "a person said no"},
		{"answer refused: expired", "a yes came after the ticket's end"},
		{"answer refused: already-answered", "a person clicked twice"},
		{"answer refused: not-open", "somebody else had answered first"},
		{"answer refused: started", "a no came too late"},
		{"answer refused: not-approver", "somebody who may not answered"},
		{"freeze", "people froze"},
		{"thaw", "people thawed"},
		{"reason freeze", "a freeze held"},
		{"reason clocks-apart", "a clock that is more than 5 s off held everything"},
		{"reason two-fresh-reads", "a new process waited for its second read"},
		{"reason unknown", "no data held"},
		{"reason spec-problem", "an objective that was never met held"},
		{"reason recovering", "a good judge window held"},
		{"reason dependency", "a dependency that is not met held"},
		{"reason min-spacing", "effects were spaced"},
		{"reason cap-service", "a service's cap held"},
		{"reason cap-global", "the fleet's cap held"},
		{"reason in-flight-target", "another service's effect locked the target"},
		{"reason key-claimed", "the window was spent"},
		{"reason budget-spent", "an empty balance turned auto into approval"},
		{"suspended", "an action waits for a named reset"},
		{"reason documents-changed", "changed documents limited to approval"},
		{"reason person-said-no", "a no held the action in its episode"},
		{"reason unanswered", "a silence held the action in its episode"},
		{"reason bounds", "a proposal outside the catalogue's bounds was denied"},
		{"reason unknown-action", "a proposal of an action that does not exist was denied"},
		{"reason malformed", "a reply that was no proposal, or none, closed the window"},
		{"reason proposed-escalate", "the proposer handed over"},
		{"reason policy-fault", "a policy that cannot be evaluated held"},
		{"reason undefined", "a policy that says nothing granted nothing"},
		{"outcome recovered", "measurement said it recovered"},
		{"outcome improved", "measurement said it improved"},
		{"outcome no-change", "measurement said nothing changed"},
		{"outcome worsened", "measurement said it got worse"},
		{"outcome unknown", "measurement could not say"},
		{"episode over", "met for holdFor"},
		{"with a person at the end", "what was left was with a person"},
	}
}

// table gives the counters in their order and the names that stayed at zero.
// What was counted without being expected comes after, for whoever looks.
func (c coverage) table() ([]Counter, []string) {
	var out []Counter
	unreached := []string{}
	left := maps.Clone(c)
	for _, s := range interesting() {
		out = append(out, Counter{Name: s[0], Means: s[1], Count: c[s[0]]})
		delete(left, s[0])
		if c[s[0]] == 0 {
			unreached = append(unreached, s[0])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		out = append(out, Counter{Name: name, Count: left[name]})
	}
	return out, unreached
}

// counted counts what can be read from an entry.
func (w *world) counted(e ledger.Entry, body any) {
	switch b := body.(type) {
	case ledger.Claim:
		w.hit("claimed")
		if b.Ticket != "" {
			w.hit("claimed by a ticket")
		}
		w.rivals(e.Service, b)
	case ledger.Started:
		w.hit("started")
	case ledger.Void:
		w.hit("void")
	case ledger.Receipt:
		w.hit("effect " + string(b.Receipt.Effect))
	case ledger.Settled:
		w.hit("settled as " + string(b.Effect))
		if b.Effect == execute.NotLanded && b.By == ledger.SettledByObservation {
			w.hit("not landed, proved after the horizon")
		}
	case ledger.Recovered:
		w.hit("episode over")
	case approve.Ticket:
		w.hit("ticket opened")
	}
}

// rivals: another replica is about to act in the same window.
func (w *world) rivals(service string, b ledger.Claim) {
	n := 0
	for i := range w.reps {
		r := &w.reps[i]
		if r.up && r.stage >= claiming && r.pass.svc.Name == service && r.pass.permit.Key() == b.Key {
			n++
		}
	}
	if n > 1 {
		w.hit("two replicas in one window")
	}
}
