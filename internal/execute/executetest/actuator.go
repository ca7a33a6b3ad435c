package executetest

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// ActuatorOptions are what an actuator is made of; all may be zero.
type ActuatorOptions struct {
	// Journal is the path of an append-only file of JSON lines, synced before
	// anything is answered or applied; empty keeps the journal in memory.
	Journal string
	// Secret: requests without its signature are refused with 401.
	Secret []byte
	// Dedup answers 409 to a key that it has taken and applies nothing again.
	Dedup bool
	// State is the target's state at the start, by parameter name.
	State map[string]any
	// OnApply is called for each effect, in order; it is where a simulated
	// service changes. Its parameters are those that take effect.
	OnApply func(execute.Envelope)
	// OnForeign is called for each change that ModeRevert makes afterwards, with
	// what is written; nil is a value that is taken away.
	OnForeign func(changed map[string]any)
	// Now stamps records; nil stamps none.
	Now func() time.Time
	// After runs f once, later, on another goroutine; nil is time.AfterFunc. A
	// test with a clock of its own has the delays of modes end by it.
	After func(d time.Duration, f func())
}

// Actuator is a small real actuator: POST on any path acts, GET answers the
// status of ?key=. A key belongs to the first digest that it came with; with
// another one it is refused with 422, whatever the mode. It is an http.Handler
// and safe for concurrent use.
type Actuator struct {
	o       ActuatorOptions
	journal *journal

	mu      sync.Mutex
	closed  bool
	modes   modes
	state   map[string]any
	keys    map[string]memory
	pending map[int]Record
}

// memory is what the actuator knows of a key.
type memory struct {
	// digest is the only one that the key may come with.
	digest string
	// taken: a request of the key was accepted, so that dedup answers the next.
	taken bool
	// result is what a status answers; empty while nothing is known, as between
	// the acceptance of a late effect and the effect.
	result execute.Effect
}

// NewActuator returns an actuator. Everything that an existing journal says is
// known to it again: the keys, the state, and what is still to come. Of that,
// what is due happens before NewActuator returns.
func NewActuator(o ActuatorOptions) (*Actuator, error) {
	j, err := openJournal(o.Journal)
	if err != nil {
		return nil, err
	}
	a := &Actuator{
		o: o, journal: j, modes: modes{always: Treatment{Mode: ModeOK}},
		state: maps.Clone(o.State), keys: map[string]memory{}, pending: map[int]Record{},
	}
	if a.o.After == nil {
		a.o.After = func(d time.Duration, f func()) { time.AfterFunc(d, f) }
	}
	if a.state == nil {
		a.state = map[string]any{}
	}
	for i, r := range j.all() {
		a.remember(i+1, r)
	}
	if err := a.resume(); err != nil {
		return nil, errors.Join(err, j.close())
	}
	return a, nil
}

// Close closes the journal's file. What was still to come does not happen; the
// next actuator on that journal does it.
func (a *Actuator) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	return a.journal.close()
}

// SetState changes the target as a stranger would. It is not journaled: the
// caller is the one who knows.
func (a *Actuator) SetState(name string, value any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state[name] = value
}

// State returns a copy of the target's state.
func (a *Actuator) State() map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.state)
}

// Journal returns every record, in order.
func (a *Actuator) Journal() []Record { return a.journal.all() }

// Effects returns the records of changes that a key made, in order.
func (a *Actuator) Effects() []Record {
	return slices.DeleteFunc(a.journal.all(), func(r Record) bool { return !r.Applied })
}

// ServeHTTP acts or answers a status.
func (a *Actuator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		a.status(w, r)
	case http.MethodPost:
		a.act(w, r)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (a *Actuator) status(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	m := a.keys[r.URL.Query().Get("key")]
	answer := map[string]any{"known": m.result != "", "state": maps.Clone(a.state)}
	a.mu.Unlock()
	if m.result != "" {
		answer["result"] = m.result
	}
	writeJSON(w, http.StatusOK, answer)
}

func (a *Actuator) act(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, execute.MaxAnswer))
	var e struct {
		execute.Envelope
		DryRun bool `json:"dryRun"`
	}
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	if err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": err.Error()})
		return
	}
	rec := Record{
		Key: string(e.Key), Digest: e.Digest, Service: e.Service, Action: e.Action, Parameters: e.Parameters,
		Path: r.URL.Path, Remote: r.RemoteAddr, Header: r.Header.Clone(), Body: string(body),
		Signed: a.signed(r.Header.Get(execute.HeaderSignature), body), DryRun: e.DryRun,
	}
	o, err := a.record(&rec)
	if err != nil {
		writeJSON(w, http.StatusInternalServerError, map[string]any{"error": err.Error()})
		return
	}
	answer(w, r, o, rec)
}

// record decides, journals and applies one request, all under the lock: the
// journal is synced before anything changes or is answered.
func (a *Actuator) record(rec *Record) (outcome, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.modes.take()
	o := a.decide(t, rec)
	rec.Result, rec.Applied, rec.Late = o.result, o.applied, o.late
	rec.Time = a.now()
	a.foresee(t, o, rec)
	return o, a.write(*rec)
}

// decide says what becomes of a request, before anything happens.
func (a *Actuator) decide(t Treatment, rec *Record) outcome {
	m, bound := a.keys[rec.Key]
	known := bound && m.taken
	switch {
	case !rec.Signed:
		return outcome{status: http.StatusUnauthorized, result: execute.None}
	case bound && m.digest != rec.Digest:
		rec.Conflict = true
		return outcome{status: http.StatusUnprocessableEntity, result: execute.None}
	case known && (a.o.Dedup || t.Mode == ModeDuplicateTolerant):
		rec.Duplicate = true
		o := outcome{status: http.StatusConflict, result: m.result}
		if t.Mode == ModeDuplicateTolerant {
			o.status = http.StatusOK
		}
		if o.result == "" {
			o.result = execute.None
		}
		return o
	}
	o := plan(t.Mode)
	if rec.DryRun {
		if o.late {
			o.result = execute.Applied
		}
		o.applied, o.late = false, false
	}
	return o
}

// write makes a record durable and then true.
func (a *Actuator) write(r Record) error {
	if a.closed {
		return errors.New("the actuator is closed")
	}
	n, err := a.journal.add(r)
	if err != nil {
		return err
	}
	a.remember(n, r)
	switch {
	case r.Applied && a.o.OnApply != nil:
		a.o.OnApply(execute.Envelope{
			APIVersion: spec.Group, Key: gate.Key(r.Key), Digest: r.Digest,
			Service: r.Service, Action: r.Action, Parameters: r.changed(),
		})
	case r.Foreign && a.o.OnForeign != nil:
		a.o.OnForeign(r.changed())
	}
	if p, waits := a.pending[n]; waits {
		a.o.After(p.Delay, func() { a.happen(n) })
	}
	return nil
}

// remember takes a record into the state. It is the only thing that does, so
// that a restart cannot remember otherwise than what happened.
func (a *Actuator) remember(n int, r Record) {
	if r.Signed && !r.Conflict {
		m, bound := a.keys[r.Key]
		if !bound {
			m.digest = r.Digest
		}
		if r.Result != execute.None {
			m.result, m.taken = r.Result, true
		}
		m.taken = m.taken || r.Late
		a.keys[r.Key] = m
	}
	for name, v := range r.changed() {
		if v == nil {
			delete(a.state, name)
		} else {
			a.state[name] = v
		}
	}
	delete(a.pending, r.Of)
	if r.waits() {
		a.pending[n] = r
	}
}

func (a *Actuator) now() time.Time {
	if a.o.Now == nil {
		return time.Time{}
	}
	return a.o.Now()
}

func (a *Actuator) signed(header string, body []byte) bool {
	return len(a.o.Secret) == 0 || Verify(a.o.Secret, header, body)
}
