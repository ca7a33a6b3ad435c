package prom

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/measure/prom/patience"
	"github.com/setpoint-dev/setpoint/internal/measure/prom/wire"
)

// What one call of Measure may spend on what fails, so that the rest is not
// delayed by it. What is left over is asked in the next pass.
const (
	maxSlow    = 6   // timeouts
	maxSlower  = 3   // timeouts of queries that timed out before
	maxTaken   = 100 // groups newly taken apart
	maxRetried = 50  // refused queries that are tried again
)

// Measure answers the queries one for one and in order. Those that can be are
// asked together, short windows first, so that a source which gives up on long
// ones has answered what decides.
func (s *Source) Measure(ctx context.Context, qs []measure.Query) []measure.Measurement {
	p := &pass{
		s: s, ctx: ctx, batch: measure.NewBatch(qs), tallies: map[patience.SizeKey]*patience.Tally{},
		workers: s.opts.MaxConcurrency,
	}
	if !slices.ContainsFunc(qs, func(q measure.Query) bool { return !q.Shown }) {
		p.workers = max(1, p.workers-1) // What decides should not wait for what is shown.
	}
	for rs := p.batch.Requests(s.sizes.Of); len(rs) > 0; rs = p.batch.Requests(s.sizes.Of) {
		p.send(rs)
	}
	s.sizes.Learn(p.tallies)
	ms := p.batch.Measurements()
	for i := range ms {
		ms[i].Source = s.opts.Name
		for j := range ms[i].Groups {
			ms[i].Groups[j].Source = s.opts.Name
		}
	}
	return ms
}

// pass is one call of Measure.
type pass struct {
	s   *Source
	ctx context.Context
	// workers is how many requests are under way at most.
	workers int

	mu      sync.Mutex // guards everything below
	batch   *measure.Batch
	tallies map[patience.SizeKey]*patience.Tally
	// How often something failed, see the limits above.
	slow, slower, taken, retried int
}

// asked is a request with what is remembered of it.
type asked struct {
	measure.Request
	key  patience.Key
	memo patience.Memo
}

func (a asked) single() bool { return a.Members == 1 }

// tooHeavy: it failed so lately, by its size or the time that it took.
func (a asked) tooHeavy() bool { return a.memo.Holds && a.memo.Verdict == patience.Heavy }

func (p *pass) remember(r measure.Request) asked {
	now := p.s.opts.Now()
	a := asked{Request: r, key: patience.KeyOf(r.Expr, r.At, now)}
	a.memo = p.s.memory.Look(a.key, now)
	return a
}

// outcome is how a request ended.
type outcome struct {
	grade grade
	// blamed: it failed although the source had just answered something else.
	blamed bool
}

// grade is the best first.
type grade int

const (
	fine grade = iota
	// skipped: not asked, or failed by the source's fault.
	skipped
	// culprit: the server refuses it, or a member of it.
	culprit
	// tooLarge: it, or a part of it, was too large or too slow.
	tooLarge
)

// send answers the requests, several at once. What was too heavy before comes
// last, so that it delays nobody.
func (p *pass) send(rs []measure.Request) {
	var light, heavies []asked
	for _, r := range rs {
		if a := p.remember(r); a.tooHeavy() {
			heavies = append(heavies, a)
		} else {
			light = append(light, a)
		}
	}
	next := make(chan asked, len(rs))
	for _, a := range slices.Concat(light, heavies) {
		next <- a
	}
	close(next)
	var wg sync.WaitGroup
	for range min(p.workers, len(rs)) {
		wg.Go(func() {
			for a := range next {
				p.count(a, p.answer(a))
			}
		})
	}
	wg.Wait()
}

// answer answers one request, in parts where it has to be.
func (p *pass) answer(r asked) outcome {
	if r.memo.Holds && !r.single() {
		return p.inParts(r)
	}
	if grade, why := p.unasked(r); grade != fine {
		p.put(r, why)
		if r.tooHeavy() && r.single() {
			return outcome{grade: tooLarge} // as far as is known, so its groups stay apart
		}
		return outcome{grade: grade}
	}
	a, blamed := p.s.ask(p.ctx, r.Expr, r.At, r.tooHeavy())
	if a.Fault.Kind == wire.Query && !r.single() {
		return p.takeApart(r, a)
	}
	return p.conclude(r, a, blamed || p.oneAnswers(r, a.Fault))
}

// oneAnswers tells a group that fails for one of its members from a source that
// fails: it asks any member alone. Where all groups hold the culprit, nothing
// else would be answered between their failures, the source would be left alone
// for them, and nobody would be known.
func (p *pass) oneAnswers(r asked, f wire.Fault) bool {
	if r.single() || f.Kind != wire.Slow && !mayBeOne(f) {
		return false
	}
	p.mu.Lock()
	one := p.batch.One(r.Request, p.s.opts.Rand())
	p.mu.Unlock()
	a, _ := p.s.ask(p.ctx, one.Expr, one.At, false)
	return !a.Fault.Is()
}

// mayBeOne: one member can make a whole group fail so.
func mayBeOne(f wire.Fault) bool {
	return f.Kind == wire.Size || f.Kind == wire.Refused || f.Told
}

// unasked is the answer to a request that is not worth sending.
func (p *pass) unasked(r asked) (grade, measure.Reading) {
	wasRefused := r.single() && r.memo.Verdict == patience.Refused
	switch {
	case wasRefused && (r.memo.Holds || !p.may(&p.retried, maxRetried)):
		return culprit, measure.Reading{Reason: measure.QueryError, Detail: r.memo.Text}
	case !p.worthwhile(r):
		return skipped, measure.Reading{
			Reason: measure.SourceError, Detail: "not asked, the source was too slow several times in this pass",
		}
	}
	return fine, measure.Reading{}
}

// conclude answers with what the source said, and remembers what follows.
func (p *pass) conclude(r asked, a wire.Answer, blamed bool) outcome {
	f := a.Fault
	if f.Reason == measure.QueryError {
		if r.single() {
			p.s.memory.Learn(r.key, patience.Refused, f.Detail, p.s.opts.Now())
			p.put(r, reading(a))
			return outcome{grade: culprit}
		}
		a.Fault.Reason = measure.SourceError // refused for its size, which is ours
	}
	p.put(r, reading(a))
	if f.Kind == wire.None || f.Kind == wire.Unusable {
		p.s.memory.Forget(r.key)
		return outcome{}
	}
	return p.failed(r, f, blamed)
}

// takeApart finds who is refused in a group that was refused as a whole.
func (p *pass) takeApart(r asked, a wire.Answer) outcome {
	p.s.memory.Part(r.key, p.s.opts.Now())
	if !p.may(&p.taken, maxTaken) {
		a.Fault.Reason = measure.SourceError
		a.Fault.Detail = fmt.Sprintf("asked with %d others, one of which is refused: %s", r.Members-1, a.Fault.Detail)
		p.put(r, reading(a))
		return outcome{grade: skipped}
	}
	out := p.inParts(r)
	if out.grade == fine {
		// Each half is answered: it is the group that cannot be.
		p.s.memory.Learn(r.key, patience.Heavy, "", p.s.opts.Now())
	}
	return out
}

// inParts asks the halves of a group, and remembers whether that is still
// needed.
func (p *pass) inParts(r asked) outcome {
	p.mu.Lock()
	halves := p.batch.Halve(r.Request)
	p.mu.Unlock()
	var out outcome
	for _, half := range halves {
		o := p.answer(p.remember(half))
		out.grade, out.blamed = max(out.grade, o.grade), out.blamed || o.blamed
	}
	switch {
	case out.grade >= culprit:
		p.s.memory.Touch(r.key, p.s.opts.Now())
	case out.grade == fine && r.memo.Verdict == patience.Refused:
		p.s.memory.Forget(r.key)
	}
	return out
}

// failed takes note of a request that failed by the source's fault, by its
// size, or because it took too long. Blamed, it is asked in smaller parts from
// the next pass on, and by itself it comes last.
func (p *pass) failed(r asked, f wire.Fault, blamed bool) outcome {
	slow := f.Kind == wire.Slow
	if blamed && (slow || !r.single() && mayBeOne(f)) {
		p.s.memory.Learn(r.key, patience.Heavy, "", p.s.opts.Now())
	}
	if slow {
		p.mu.Lock()
		defer p.mu.Unlock()
		if r.tooHeavy() {
			p.slower++
		} else {
			p.slow++
		}
	}
	if slow || f.Kind == wire.Size {
		return outcome{grade: tooLarge, blamed: blamed}
	}
	return outcome{grade: skipped}
}

// worthwhile: sources that time out are not asked for as long as there are
// queries.
func (p *pass) worthwhile(r asked) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.tooHeavy() {
		return p.slower < maxSlower
	}
	return p.slow < maxSlow
}

// may counts what is limited in one pass.
func (p *pass) may(n *int, limit int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	*n++
	return *n <= limit
}

func (p *pass) put(r asked, answer measure.Reading) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.batch.Put(r.Request, answer)
}

// count keeps how the groups of one shape and window did.
func (p *pass) count(r asked, o outcome) {
	if r.Shape == "" || o.grade == skipped {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k := patience.SizeKey{Shape: r.Shape, Window: r.Window}
	t := p.tallies[k]
	if t == nil {
		t = &patience.Tally{}
		p.tallies[k] = t
	}
	t.Sent++
	t.Blamed = t.Blamed || o.blamed
	if o.grade == tooLarge {
		t.Failed++
		t.Members = max(t.Members, r.Members)
	}
}
