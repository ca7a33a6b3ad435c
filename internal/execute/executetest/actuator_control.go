package executetest

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Control is how another process changes the modes, below /control/:
// PUT mode with a mode's name as the body sets it (?delay=2s for modes that have
// one, ?next=3 for so many requests only), GET mode says which it is, GET
// journal gives all records. It has no authentication, so nobody but a test
// should reach it.
func (a *Actuator) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /control/mode", a.putMode)
	mux.HandleFunc("GET /control/mode", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, a.mode())
	})
	mux.HandleFunc("GET /control/journal", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"items": a.Journal()})
	})
	return mux
}

// mode is what is in force, as JSON says it.
func (a *Actuator) mode() map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	said := map[string]any{"mode": a.modes.always.Mode, "delaySeconds": a.modes.always.Delay.Seconds()}
	if a.modes.left > 0 {
		said["next"] = map[string]any{
			"mode": a.modes.next.Mode, "delaySeconds": a.modes.next.Delay.Seconds(), "requests": a.modes.left,
		}
	}
	return said
}

func (a *Actuator) putMode(w http.ResponseWriter, r *http.Request) {
	t, next, err := readTreatment(r)
	if err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": err.Error()})
		return
	}
	if next > 0 {
		a.TreatNext(next, t)
	} else {
		a.Treat(t)
	}
	writeJSON(w, http.StatusOK, a.mode())
}

// readTreatment reads a treatment and for how many requests it is; 0 is all.
func readTreatment(r *http.Request) (Treatment, int, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 100))
	if err != nil {
		return Treatment{}, 0, err
	}
	t := Treatment{Mode: Mode(strings.TrimSpace(string(body)))}
	q := r.URL.Query()
	if s := q.Get("delay"); s != "" {
		if t.Delay, err = time.ParseDuration(s); err != nil {
			return Treatment{}, 0, fmt.Errorf("delay: %w", err)
		}
	}
	next := 0
	if s := q.Get("next"); s != "" {
		if next, err = strconv.Atoi(s); err != nil || next < 1 {
			return Treatment{}, 0, fmt.Errorf("next: want a number of requests, not %q", s)
		}
	}
	if err := t.Check(); err != nil {
		return Treatment{}, 0, fmt.Errorf("mode: %w", err)
	}
	return t, next, nil
}
