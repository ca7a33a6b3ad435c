package sim

import (
	"crypto/sha256"
	"math/big"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// Scope is a small world that Explore plays in full: two replicas, one
// service, two windows, one fault.
type Scope struct {
	// Ticks are how much time passes between the windows, one after the other.
	// Within one of these moments no time passes at all.
	Ticks []time.Duration
	// Passes is how many passes a replica makes at each moment.
	Passes int
	// Ask has policy ask a person, who may approve and may deny, each once and
	// at any time.
	Ask bool
	// Freeze has a person freeze every host once, at any time.
	Freeze bool

	bad mutant
}

// Exploration is what Explore went through.
type Exploration struct {
	// States are the different worlds, Interleavings the ways through them.
	States        int
	Interleavings *big.Int
	Sends         int
	Violations    []Violation
}

// Explore plays every order in which the replicas' moves, the passing of time,
// the people of the scope and one fault can come. A fault is a crash of a
// replica, an append that is not written, one that is written without an
// answer, a request or a reply that is lost. A crash before a move and one
// after it are a crash between two moves, so a crash inside an append is both:
// with the entry and without.
func Explore(s Scope) (Exploration, error) {
	set, err := newSetting()
	if err != nil {
		return Exploration{}, err
	}
	x := explorer{scope: s, ways: map[[sha256.Size]byte]*big.Int{}}
	x.out.Interleavings = x.visit(x.root(set))
	x.out.States = len(x.ways)
	return x.out, nil
}

// explorer remembers the worlds that were seen, with the ways on from each.
type explorer struct {
	scope Scope
	ways  map[[sha256.Size]byte]*big.Int
	out   Exploration
}

// node is a world with what is left to happen in it.
type node struct {
	*world
	ticks   int
	faulted bool
	passes  [2]int
	// said are the answers and freezes that were used up.
	approved, denied, froze bool
}

func (x *explorer) root(set *setting) node {
	w := bareWorld(set, 1, 2)
	w.bad = x.scope.bad
	if x.scope.Ask {
		w.policy = policyApproval
	}
	for i := range w.reps {
		w.reps[i].policy = w.policy
		w.reps[i].reads[0].n = 2
	}
	return node{world: w}
}

// visit goes on in every way and returns how many ways there are.
func (x *explorer) visit(n node) *big.Int {
	name := sha256.Sum256([]byte(n.canonical(x.scope)))
	switch ways, seen := x.ways[name]; {
	case ways != nil:
		return ways
	case seen:
		return new(big.Int) // a move that changed nothing leads nowhere
	}
	x.ways[name] = nil
	ways := new(big.Int)
	next := x.next(n)
	for _, go1 := range next {
		m := n.clone()
		go1(&m)
		if len(m.mon.broken) > 0 {
			x.out.Violations = append(x.out.Violations, m.mon.broken...)
			continue
		}
		ways.Add(ways, x.visit(m))
	}
	if len(next) == 0 {
		x.out.Sends = max(x.out.Sends, len(n.mon.sends))
		ways.SetInt64(1)
	}
	x.ways[name] = ways
	return ways
}

// next are the moves that are possible in a world; none: it has come to its
// end.
func (x *explorer) next(n node) []func(*node) {
	if len(x.out.Violations) >= maxViolations {
		return nil
	}
	var out []func(*node)
	for i := range n.reps {
		r := &n.reps[i]
		if r.stage == looking && n.passes[i] >= x.scope.Passes {
			continue
		}
		out = append(out, func(m *node) { m.moveOne(i, fateOK, noLoss) })
		if n.faulted {
			continue
		}
		out = append(out, func(m *node) { m.faulted = true; m.crash(&m.reps[i]); m.start(&m.reps[i]); m.passes[i] = 0 })
		out = append(out, x.faulty(n, i)...)
	}
	if n.ticks < len(x.scope.Ticks) {
		out = append(out, func(m *node) { m.tickOn(x.scope.Ticks[n.ticks]) })
	}
	return append(out, x.people(n)...)
}

// faulty are the moves of a replica that go wrong.
func (x *explorer) faulty(n node, i int) []func(*node) {
	if n.reps[i].stage == sending {
		return []func(*node){
			func(m *node) { m.faulted = true; m.moveOne(i, fateOK, lostRequest) },
			func(m *node) { m.faulted = true; m.moveOne(i, fateOK, lostReply) },
		}
	}
	if n.reps[i].stage == looking || n.reps[i].stage == observing || n.reps[i].stage == gating || n.reps[i].stage == awaiting {
		return nil // nothing is appended
	}
	return []func(*node){
		func(m *node) { m.faulted = true; m.moveOne(i, fateLost, noLoss) },
		func(m *node) { m.faulted = true; m.moveOne(i, fateUnsure, noLoss) },
	}
}

// people are what the persons of the scope may still do.
func (x *explorer) people(n node) []func(*node) {
	var out []func(*node)
	t := n.newestTicket()
	if t != nil && !n.approved {
		out = append(out, func(m *node) { m.approved = true; m.answer(t.ID, "os:alice", true) })
	}
	if t != nil && !n.denied {
		out = append(out, func(m *node) { m.denied = true; m.answer(t.ID, "os:bob", false) })
	}
	if x.scope.Freeze && !n.froze {
		out = append(out, func(m *node) {
			m.froze = true
			f := ledger.Freeze{ID: "f1", By: "os:bob", At: m.at}
			for i := range m.reps {
				m.reps[i].files = []ledger.Freeze{f}
			}
		})
	}
	return out
}

// loss is what the network does to the next request.
type loss int8

const (
	noLoss loss = iota
	lostRequest
	lostReply
)

func (n *node) moveOne(i int, f fate, l loss) {
	r := &n.reps[i]
	if r.stage == looking {
		n.passes[i]++
	}
	mail := len(n.mail)
	n.fate = f
	n.move(r)
	n.fate = fateOK
	if len(n.mail) > mail {
		m := &n.mail[mail]
		if m.replyLost = l != noLoss; l == lostRequest {
			m.arrives = time.Time{}
		}
	}
	n.deliver()
}

func (n *node) tickOn(d time.Duration) {
	n.ticks++
	n.passes = [2]int{}
	n.at = n.at.Add(d)
	n.deliver()
}

// clone is a world that goes on apart.
func (n node) clone() node {
	w := *n.world
	w.chain = n.chain.clone()
	w.reps = slices.Clone(n.reps)
	w.mail = slices.Clone(n.mail)
	w.act.journal, w.act.answers = slices.Clip(n.act.journal), slices.Clip(n.act.answers)
	w.mon = n.mon.clone()
	n.world = &w
	return n
}
