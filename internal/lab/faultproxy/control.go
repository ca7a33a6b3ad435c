package faultproxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Control is how another process changes the rules, below /control/: PUT fault
// with a fault as Parse reads it (?next=3 for so many connections only), GET
// fault says what is in force, GET log gives the entries, PUT hold?on=true (or
// false) stops all bytes, POST cut resets what stands. It is served on another
// address than the proxy's own, which passes everything on.
func (p *Proxy) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /control/fault", p.putFault)
	mux.HandleFunc("GET /control/fault", func(w http.ResponseWriter, _ *http.Request) { p.showRules(w) })
	mux.HandleFunc("GET /control/log", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"items": p.Log()})
	})
	mux.HandleFunc("PUT /control/hold", func(w http.ResponseWriter, r *http.Request) {
		on, err := strconv.ParseBool(r.URL.Query().Get("on"))
		if err != nil {
			refuse(w, fmt.Errorf("hold: want ?on=true or ?on=false"))
			return
		}
		p.Hold(on)
		writeJSON(w, http.StatusOK, map[string]any{"hold": on})
	})
	mux.HandleFunc("POST /control/cut", func(w http.ResponseWriter, _ *http.Request) {
		p.Cut()
		writeJSON(w, http.StatusOK, map[string]any{"cut": true})
	})
	return mux
}

func (p *Proxy) putFault(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1000))
	if err != nil {
		refuse(w, err)
		return
	}
	f, err := Parse(strings.TrimRight(string(body), "\r\n"))
	if err == nil {
		err = p.rule(r.URL.Query().Get("next"), f)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	p.showRules(w)
}

// rule sets a fault for so many connections; empty is all.
func (p *Proxy) rule(next string, f Fault) error {
	if next == "" {
		return p.Set(f)
	}
	n, err := strconv.Atoi(next)
	if err != nil {
		return fmt.Errorf("next: want a number of connections, not %q", next)
	}
	return p.Next(n, f)
}

func (p *Proxy) showRules(w http.ResponseWriter) {
	always, next, left := p.Rules()
	said := map[string]any{"fault": always.String()}
	if left > 0 {
		said["next"] = map[string]any{"fault": next.String(), "connections": left}
	}
	writeJSON(w, http.StatusOK, said)
}

func refuse(w http.ResponseWriter, err error) {
	writeJSON(w, http.StatusBadRequest, map[string]any{"error": err.Error()})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // The client is gone; nothing is lost.
}
