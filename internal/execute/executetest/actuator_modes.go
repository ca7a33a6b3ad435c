package executetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
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
	// ModeRefuse answers 403; nothing is done, and the key stays unknown.
	ModeRefuse Mode = "refuse"
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
	// ModeLate answers 202 at once and applies after the delay. Until then a
	// status does not know the key.
	ModeLate Mode = "late"
	// ModeLateDropReply closes the connection without an answer and applies
	// after the delay.
	ModeLateDropReply Mode = "late-drop-reply"
	// ModePartial says applied and does a part: of several parameters the first
	// half by name, of a single number half of the way.
	ModePartial Mode = "partial"
	// ModeRevert applies, and after the delay writes back what was there before,
	// as another controller would.
	ModeRevert Mode = "revert"
	// ModeDuplicateTolerant applies, and answers a key that it has taken with
	// the first result and "duplicate": true.
	ModeDuplicateTolerant Mode = "duplicate-tolerant"
)

// Modes are all modes, sorted.
func Modes() []Mode {
	return []Mode{
		Mode202, Mode409, Mode500, ModeDropReply, ModeDropRequest, ModeDuplicateTolerant, ModeFailed, ModeHang,
		ModeLate, ModeLateDropReply, ModeLie, ModeNoOp, ModeNotNow, ModeOK, ModePartial, ModeRedirect, ModeRefuse,
		ModeResetBody, ModeRevert,
	}
}

// Treatment is a mode with what it needs.
type Treatment struct {
	Mode Mode
	// Delay is of late, late-drop-reply and revert.
	Delay time.Duration
}

// Check says what is wrong with a treatment.
func (t Treatment) Check() error {
	if !slices.Contains(Modes(), t.Mode) {
		return fmt.Errorf("unknown word %q", t.Mode)
	}
	if t.Delay < 0 {
		return fmt.Errorf("delay %s is negative", t.Delay)
	}
	if t.Delay > 0 && !plan(t.Mode).late && t.Mode != ModeRevert {
		return fmt.Errorf("mode %s has no delay; late, late-drop-reply and revert have", t.Mode)
	}
	return nil
}

// modes are how requests are treated.
type modes struct {
	always Treatment
	// next is for so many requests before always has its turn again.
	next Treatment
	left int
}

// take gives the treatment of one request.
func (m *modes) take() Treatment {
	if m.left == 0 {
		return m.always
	}
	m.left--
	return m.next
}

// SetMode sets how the next requests are treated.
func (a *Actuator) SetMode(m Mode) { a.Treat(Treatment{Mode: m}) }

// Treat sets how all requests from now on are treated.
func (a *Actuator) Treat(t Treatment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.modes = modes{always: t}
}

// TreatNext sets how the next n requests are treated; then it is as before.
func (a *Actuator) TreatNext(n int, t Treatment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.modes.next, a.modes.left = t, n
}

// outcome is what becomes of a request: what is answered, remembered for the
// key, and done. The zero mode answers in full.
type outcome struct {
	mode          Mode
	status        int
	result        execute.Effect
	applied, late bool
}

// plan is the outcome of a request that nothing is wrong with.
func plan(m Mode) outcome {
	o := outcome{mode: m, status: http.StatusOK, result: execute.Applied}
	switch m {
	case ModeNoOp:
		o.result = execute.NoOp
	case ModeFailed:
		o.result = execute.Failed
	case ModeNotNow:
		o.status, o.result = http.StatusServiceUnavailable, execute.NotNow
	case ModeRedirect:
		o.status, o.result = http.StatusTemporaryRedirect, execute.None
	case ModeRefuse:
		o.status, o.result = http.StatusForbidden, execute.None
	case ModeDropRequest:
		o.result = execute.None
	case ModeLie:
	case Mode409:
		o.status = http.StatusConflict
	default:
		return does(o)
	}
	return o
}

// does is the outcome of the modes in which something happens.
func does(o outcome) outcome {
	switch o.mode {
	case ModeLate, ModeLateDropReply:
		o.status, o.result, o.late = http.StatusAccepted, execute.None, true
		return o
	case Mode202:
		o.status = http.StatusAccepted
	case Mode500:
		o.status = http.StatusInternalServerError
	}
	o.applied = true
	return o
}

// answer is what goes over the wire after everything has happened.
func answer(w http.ResponseWriter, r *http.Request, o outcome, rec Record) {
	switch o.mode {
	case ModeDropReply, ModeDropRequest, ModeLateDropReply:
		hangUp(w, "")
	case ModeResetBody:
		hangUp(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 400\r\n\r\n{\"result\":")
	case ModeHang:
		<-r.Context().Done()
	case ModeRedirect:
		w.Header().Set("Location", strings.TrimSuffix(r.URL.Path, "/")+"/elsewhere")
		w.WriteHeader(o.status)
	default:
		said := map[string]any{"result": rec.Result, "duplicate": rec.Duplicate}
		if rec.Conflict {
			said["error"] = "this key came with another digest before"
		}
		writeJSON(w, o.status, said)
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

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
