package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// FreezeRequest is the body of a freeze. ID names a file that the command
// line has written already; without one the agent writes it.
type FreezeRequest struct {
	ID      string    `json:"id,omitempty"`
	Service string    `json:"service"`
	Reason  string    `json:"reason"`
	Until   time.Time `json:"until,omitzero"`
}

var freezeID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

func (s *Server) freeze(r *http.Request) (any, error) {
	var body FreezeRequest
	if err := decode(r, &body); err != nil {
		return nil, err
	}
	if err := needReason(&body.Reason, "say why, for the people who find it frozen"); err != nil {
		return nil, err
	}
	now := s.o.Now().UTC()
	if err := checkFreeze(s.set(), body, now); err != nil {
		return nil, err
	}
	by, _ := actorOf(r)
	f := ledger.Freeze{
		ID: body.ID, Service: body.Service, By: by, Reason: body.Reason,
		Until: body.Until, At: now,
	}
	if f.ID == "" {
		f.ID = NewFreezeID()
	}
	f, err := s.put(r.Context(), f)
	if err != nil {
		return nil, err
	}
	return freezeAnswer(f, now), nil
}

// put makes a freeze durable, its file first, and gives it as recorded.
func (s *Server) put(ctx context.Context, f ledger.Freeze) (ledger.Freeze, error) {
	before, err := s.standing(f)
	if err != nil {
		return f, err
	}
	if !before.filed {
		switch err := s.o.WriteFreeze(f); {
		case errors.Is(err, fs.ErrExist):
			return f, taken(f.ID, "was used at the same moment")
		case err != nil:
			return f, err
		}
	}
	if err := s.o.Desk.Freeze(ctx, f); err != nil {
		return f, err
	}
	// Another request may have used or lifted the id in between: only what is
	// in the record is acknowledged.
	after, err := s.standing(f)
	if err == nil && !after.recorded {
		err = fmt.Errorf("freeze %s is in force by its file, and the ledger does not show it", f.ID)
	}
	return after.freeze, err
}

func checkFreeze(set spec.Set, body FreezeRequest, now time.Time) error {
	switch {
	case body.ID != "" && !freezeID.MatchString(body.ID):
		return bad("id: want letters, digits, - and _")
	case !body.Until.IsZero() && !body.Until.After(now):
		return bad("until: %s has passed already", body.Until.UTC().Format(time.RFC3339))
	}
	if body.Service == "" {
		return nil
	}
	if _, ok := set.Service(body.Service); !ok {
		return notFound("no service %q in the documents", body.Service)
	}
	return nil
}

// standing is what files and ledger have under the id of a freeze.
type standing struct {
	filed, recorded bool
	freeze          ledger.Freeze
}

// standing refuses an id that means something else already. An id is used
// once: after its thaw every host removes its file, and a second freeze of the
// same name would bind nobody. The very same freeze again is a retry.
func (s *Server) standing(f ledger.Freeze) (standing, error) {
	files, err := s.o.Files()
	if err != nil {
		return standing{}, err
	}
	out := standing{freeze: f}
	var lifted bool
	var thaw ledger.Thaw
	s.o.View(func(v View) {
		thaw, lifted = v.State.Thawed[f.ID]
		if have, ok := v.State.Freezes[f.ID]; ok {
			out.recorded, out.freeze = true, have
		}
	})
	if lifted {
		return standing{}, taken(f.ID, "was lifted by "+thaw.By)
	}
	if out.recorded && !sameFreeze(out.freeze, f) {
		return standing{}, taken(f.ID, "is in force and says something else")
	}
	if i := slices.IndexFunc(files, func(have ledger.Freeze) bool { return have.ID == f.ID }); i >= 0 {
		out.filed = true
		if !sameFreeze(files[i], f) {
			return standing{}, taken(f.ID, "is a file here that says something else")
		}
	}
	return out, nil
}

// sameFreeze reports whether one is a repetition of the other.
func sameFreeze(a, b ledger.Freeze) bool {
	return a.Service == b.Service && a.Until.Equal(b.Until) && a.Reason == b.Reason && a.By == b.By
}

func taken(id, why string) error {
	return &Error{
		Status: http.StatusConflict, Code: "conflict",
		Message: fmt.Sprintf("freeze %q %s: nothing new is frozen; leave id out, or give one that was never used", id, why),
	}
}

func freezeAnswer(f ledger.Freeze, now time.Time) any {
	one := freezeOf(f, now)
	one.File, one.Recorded = true, true
	return struct {
		Meta
		Freeze
	}{Meta{APIVersion: apiVersion, Kind: "Freeze"}, one}
}

// ReasonRequest is the body of a write that needs a reason only.
type ReasonRequest struct {
	Reason string `json:"reason"`
}

func (s *Server) thaw(r *http.Request) (any, error) {
	var body ReasonRequest
	if err := decode(r, &body); err != nil {
		return nil, err
	}
	if err := needReason(&body.Reason, "say why it may act again"); err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	by, _ := actorOf(r)
	v := View{State: ledger.NewState()}
	// A copy of the one fact that is needed: the desk changes the state.
	s.o.View(func(now View) {
		v.Files = now.Files
		if f, ok := now.State.Freezes[id]; ok {
			v.State.Freezes[id] = f
		}
	})
	if err := Thaw(r.Context(), s.o.Desk, v, ledger.Thaw{ID: id, By: by, Reason: body.Reason}); err != nil {
		return nil, err
	}
	if err := s.o.RemoveFreeze(id); err != nil {
		return nil, err
	}
	return done("Thaw", id), nil
}
