package executetest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
)

// Mode is how the actuator behaves towards the requests that follow.
type Mode string

// The modes. Where a mode loses the answer the effect happens, since that is
// the case in which a second send does harm; drop-request is the other one.
const (
	ModeOK     Mode = "ok"
	ModeNoOp   Mode = "no-op"
	ModeFailed Mode = "failed"
	// ModeNotNow answers 503 with the result not-now.
	ModeNotNow Mode = "not-now"
	// Mode202 applies and answers 202.
	Mode202 Mode = "202"
	// Mode409 answers "already done with that key" and applies nothing.
	Mode409 Mode = "409"
	// Mode500 applies and answers 500.
	Mode500 Mode = "500"
	// ModeRedirect answers 307 to another path and applies nothing; a client
	// that follows it shows in the journal.
	ModeRedirect Mode = "redirect"
	// ModeDropReply applies and closes the connection without an answer.
	ModeDropReply Mode = "drop-reply"
	// ModeDropRequest closes the connection and applies nothing.
	ModeDropRequest Mode = "drop-request"
	// ModeResetBody applies, begins a 200 and breaks off inside the body.
	ModeResetBody Mode = "reset-body"
	// ModeHang applies and never answers.
	ModeHang Mode = "hang"
	// ModeLie says applied and does nothing.
	ModeLie Mode = "lie"
)

// ActuatorOptions are what an actuator is made of; all may be zero.
type ActuatorOptions struct {
	// Journal is the path of an append-only file of JSON lines, synced before
	// each answer; empty keeps the journal in memory.
	Journal string
	// Secret: requests without its signature are refused with 401.
	Secret []byte
	// Dedup answers 409 to a key that it has seen and applies nothing again.
	Dedup bool
	// State is the target's state at the start, by parameter name.
	State map[string]any
	// OnApply is called for each effect, in order; it is where a simulated
	// service changes.
	OnApply func(execute.Envelope)
	// Now stamps records; nil stamps none.
	Now func() time.Time
}

// Actuator is a small real actuator: POST on any path acts, GET answers the
// status of ?key=. It is an http.Handler and safe for concurrent use.
type Actuator struct {
	o       ActuatorOptions
	journal *journal

	mu      sync.Mutex
	mode    Mode
	state   map[string]any
	results map[string]execute.Effect
}

// NewActuator returns an actuator; the keys of an existing journal are known to
// it again.
func NewActuator(o ActuatorOptions) (*Actuator, error) {
	j, err := openJournal(o.Journal)
	if err != nil {
		return nil, err
	}
	a := &Actuator{o: o, journal: j, mode: ModeOK, state: maps.Clone(o.State), results: map[string]execute.Effect{}}
	if a.state == nil {
		a.state = map[string]any{}
	}
	for _, r := range j.all() {
		if r.Result != execute.None {
			a.results[r.Key] = r.Result
		}
		if r.Applied {
			maps.Copy(a.state, r.Parameters)
		}
	}
	return a, nil
}

// Close closes the journal's file.
func (a *Actuator) Close() error { return a.journal.close() }

// SetMode sets how the next requests are treated.
func (a *Actuator) SetMode(m Mode) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mode = m
}

// SetState changes the target as a stranger would.
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

// Journal returns every request that tried to act, in order.
func (a *Actuator) Journal() []Record { return a.journal.all() }

// Effects returns the requests that changed the target, in order.
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
	result, known := a.results[r.URL.Query().Get("key")]
	answer := map[string]any{"known": known, "state": maps.Clone(a.state)}
	a.mu.Unlock()
	if known {
		answer["result"] = result
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
	mode, status, err := a.record(&rec, e.Envelope)
	if err != nil {
		writeJSON(w, http.StatusInternalServerError, map[string]any{"error": err.Error()})
		return
	}
	answer(w, r, mode, status, rec)
}

// record decides, journals and applies one request, all under the lock: the
// journal is synced before anything changes or is answered.
func (a *Actuator) record(rec *Record, e execute.Envelope) (Mode, int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	mode := a.mode
	_, seen := a.results[rec.Key]
	status, result, applied := plan(mode)
	switch {
	case !rec.Signed:
		mode, status, result, applied = ModeFailed, http.StatusUnauthorized, execute.None, false
	case a.o.Dedup && seen:
		mode, status, applied, rec.Duplicate = Mode409, http.StatusConflict, false, true
		result = a.results[rec.Key]
	case rec.DryRun:
		applied = false
	}
	rec.Result, rec.Applied = result, applied
	if a.o.Now != nil {
		rec.Time = a.o.Now()
	}
	if err := a.journal.add(*rec); err != nil {
		return mode, status, err
	}
	if result != execute.None {
		a.results[rec.Key] = result
	}
	if applied {
		maps.Copy(a.state, e.Parameters)
		if a.o.OnApply != nil {
			a.o.OnApply(e)
		}
	}
	return mode, status, nil
}

// plan is what a mode answers, remembers for the key, and does.
func plan(m Mode) (status int, result execute.Effect, applied bool) {
	switch m {
	case ModeNoOp:
		return http.StatusOK, execute.NoOp, false
	case ModeFailed:
		return http.StatusOK, execute.Failed, false
	case ModeNotNow:
		return http.StatusServiceUnavailable, execute.NotNow, false
	case ModeRedirect:
		return http.StatusTemporaryRedirect, execute.None, false
	case ModeDropRequest:
		return 0, execute.None, false
	case ModeLie:
		return http.StatusOK, execute.Applied, false
	case Mode409:
		return http.StatusConflict, execute.Applied, false
	case Mode202:
		return http.StatusAccepted, execute.Applied, true
	case Mode500:
		return http.StatusInternalServerError, execute.Applied, true
	}
	return http.StatusOK, execute.Applied, true
}

// answer is what goes over the wire after everything has happened.
func answer(w http.ResponseWriter, r *http.Request, m Mode, status int, rec Record) {
	switch m {
	case ModeDropReply, ModeDropRequest:
		hangUp(w, "")
	case ModeResetBody:
		hangUp(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 400\r\n\r\n{\"result\":")
	case ModeHang:
		<-r.Context().Done()
	case ModeRedirect:
		w.Header().Set("Location", strings.TrimSuffix(r.URL.Path, "/")+"/elsewhere")
		w.WriteHeader(status)
	default:
		writeJSON(w, status, map[string]any{"result": rec.Result, "duplicate": rec.Duplicate})
	}
}

// hangUp writes raw bytes, if any, and closes the connection.
func hangUp(w http.ResponseWriter, first string) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(fmt.Errorf("actuator: the server cannot hang up: %w", err))
	}
	_, _ = buf.WriteString(first)
	_ = buf.Flush()
	_ = conn.Close()
}

func (a *Actuator) signed(header string, body []byte) bool {
	return len(a.o.Secret) == 0 || Verify(a.o.Secret, header, body)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
