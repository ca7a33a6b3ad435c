package worst

// step is one effect of a plan.
type step struct {
	service, action string
	kind            harm
}

// planner looks for the order of harm that does most within the budgets of some
// services. It knows what a claim needs and what an outcome costs, and nothing of
// the formula that it is held against.
type planner struct {
	setup   Setup
	actions []step // without a kind
	seen    map[spending]int
}

// spending is how far a plan has come: the action whose turn it is, what it cost
// and how often it did harm in plain sight, and what everything before cost.
type spending struct {
	action, worsened int
	own, fleet       float64
}

// plan is what does most harm to the first services. Which actions come last
// matters, because the last claim of all needs no room after it.
func (s Setup) plan(services int) []step {
	var best []step
	most := -1
	for _, order := range [][]string{{tune, restart}, {restart, tune}} {
		p := &planner{setup: s, seen: map[spending]int{}}
		for _, action := range order {
			for n := range services {
				p.actions = append(p.actions, step{service: serviceName(n), action: action})
			}
		}
		if n := p.most(spending{}); n > most {
			most, best = n, p.steps()
		}
	}
	return best
}

// move is one way on: an effect, or none, which passes on to the next action.
type move struct {
	kind harm
	does int
	to   spending
}

// moves are all ways on. An effect that is seen to do harm is followed by an undo
// where there is one, which does harm too; two of them and the action is demoted.
func (p *planner) moves(at spending) []move {
	if at.action == len(p.actions) {
		return nil
	}
	ms := []move{{to: spending{action: at.action + 1, fleet: at.fleet}}}
	s := p.setup
	if dear := s.Costs.Dearest(); at.worsened == 2 || s.Capacity-at.own < dear || s.Global-at.fleet < dear {
		return ms
	}
	paid := func(cost float64) spending {
		return spending{action: at.action, worsened: at.worsened, own: at.own + cost, fleet: at.fleet + cost}
	}
	blinded, harmed := move{blind, 1, paid(s.Costs.Unknown)}, move{worse, 1, paid(s.Costs.Worsened)}
	harmed.to.worsened++
	if p.actions[at.action].action == tune {
		harmed.does++
	}
	return append(ms, blinded, harmed)
}

// most is how many harmful effects can still be done.
func (p *planner) most(at spending) int {
	if n, known := p.seen[at]; known {
		return n
	}
	best := 0
	for _, m := range p.moves(at) {
		best = max(best, m.does+p.most(m.to))
	}
	p.seen[at] = best
	return best
}

// steps are those of a best plan.
func (p *planner) steps() []step {
	var out []step
	for at := (spending{}); at.action < len(p.actions); {
		for _, m := range p.moves(at) {
			if m.does+p.most(m.to) != p.most(at) {
				continue
			}
			if m.kind != "" {
				out = append(out, step{p.actions[at.action].service, p.actions[at.action].action, m.kind})
			}
			at = m.to
			break
		}
	}
	return out
}
