package sim

import (
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// message is one request on the wire, with its reply. A request that is not
// lost arrives within the action's timeout and lateness: that much the
// operator promised in the document.
type message struct {
	from, life int
	service    string
	key        gate.Key
	digest     string
	target     string
	sent       time.Time
	// arrives is when it reaches the actuator, again when a proxy sends it
	// twice; zero: never, or not any more.
	arrives, again time.Time
	// reply is when the answer reaches the sender; zero: never.
	reply     time.Time
	replyLost bool
	result    execute.Effect
}

// actuator changes something once for each request that reaches it. It
// remembers keys, as one with a status URL does, and answers a repeated
// delivery of one request with what it did; a second request is a second
// effect, so that the journal shows whatever was sent twice.
type actuator struct {
	journal []effect
	answers []answer
}

// effect is one line of the actuator's journal.
type effect struct {
	key    gate.Key
	digest string
	target string
	at     time.Time
	msg    int
}

// answer is what a request got.
type answer struct {
	key    gate.Key
	msg    int
	result execute.Effect
}

// known is what the actuator says of a key.
func (a *actuator) known(key gate.Key) (execute.Effect, bool) {
	for _, b := range a.answers {
		if b.key == key {
			return b.result, true
		}
	}
	return "", false
}

// post puts a permitted request on the wire and returns its number.
func (w *world) post(r *replica, p gate.Permit) int {
	a := p.Action()
	m := message{
		from: r.id, life: r.life, service: p.Service(), key: p.Key(), digest: p.Digest(), target: a.Canonical(),
		sent: w.at, arrives: w.at.Add(w.moment()),
	}
	late := a.Timeout + a.MaxLateness
	switch {
	case w.fault(w.faults.net):
		w.hit("request lost")
		m.arrives = time.Time{}
	case w.fault(w.faults.net):
		w.hit("request late")
		m.arrives = w.at.Add(a.Timeout + time.Duration(w.pick(int(a.MaxLateness))))
	case w.fault(w.faults.net):
		m.again = w.at.Add(time.Duration(w.pick(int(late))))
	}
	m.replyLost = w.fault(w.faults.net)
	w.mail = append(w.mail, m)
	w.mon.sent(m)
	w.note("sent %s of %s", a.Name, m.key)
	return len(w.mail) - 1
}

func (w *world) moment() time.Duration {
	if w.rng == nil {
		return 0
	}
	return time.Duration(20+w.pick(900)) * time.Millisecond
}

// deliver lets everything arrive that is due.
func (w *world) deliver() {
	for i := range w.mail {
		m := &w.mail[i]
		if !m.arrives.IsZero() && !m.arrives.After(w.at) {
			m.arrives = time.Time{}
			m.result = w.receive(*m, i)
			if m.replyLost {
				w.hit("reply lost")
			} else {
				m.reply = w.at.Add(w.moment())
			}
		}
		if m.arrives.IsZero() && !m.again.IsZero() && !m.again.After(w.at) {
			m.again = time.Time{}
			w.hit("request delivered twice")
			w.receive(*m, i)
		}
	}
}

// receive is the actuator's part.
func (w *world) receive(m message, id int) execute.Effect {
	if i := slices.IndexFunc(w.act.answers, func(a answer) bool { return a.msg == id }); i >= 0 {
		return w.act.answers[i].result
	}
	result := execute.Applied
	if !w.calm && w.roll(w.faults.fewer) {
		result = [...]execute.Effect{execute.Failed, execute.NotNow, execute.NoOp, execute.AppliedWithError}[w.pick(4)]
	}
	w.act.answers = append(w.act.answers, answer{m.key, id, result})
	w.note("the actuator has %s: %s", m.key, result)
	if result != execute.Applied && result != execute.AppliedWithError {
		return result
	}
	w.act.journal = append(w.act.journal, effect{m.key, m.digest, m.target, w.at, id})
	w.mon.effect(w.act.journal[len(w.act.journal)-1])
	w.helped(m.service)
	return result
}

// helped lets an effect help, or harm, or neither.
func (w *world) helped(service string) {
	for i := range w.services {
		if serviceName(i) == service && w.roll(350) {
			w.truth[i] = w.anyTruth()
		}
	}
}

// ask is the actuator's status answer about a key, as an executor reads it.
func (w *world) ask(a spec.Action, key gate.Key) execute.Observation {
	if a.Mark() == spec.MarkUnmarked || w.fault(w.faults.status) {
		return execute.Observation{}
	}
	result, known := w.act.known(key)
	if result == execute.AppliedWithError {
		result = execute.Applied
	}
	return execute.Observation{Known: true, KeyKnown: known, Result: result, State: live()}
}
