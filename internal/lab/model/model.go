// Package model is an OpenAI-compatible endpoint whose brain is a rules file.
// It takes chat completion requests and decides from the evidence in the
// prompt alone, as a language model would have to. It is not one, and says so
// in its model name.
//
// A question without evidence is answered as by a server that honours schemas:
// with the first instance of the schema that is demanded (by response_format
// json_schema, or by a tool), or else with the first line of the first message.
// So a check of what the endpoint honours finds what it would find at a real
// one; response_format json_object alone is not honoured there.
package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/rules"
)

// Name is the model that it answers as.
const Name = "rules-file-behind-openai-api"

// maxBody bounds a request; no prompt of ours comes near it.
const maxBody = 4 << 20

// Handler answers POST /v1/chat/completions and GET /v1/models. Whatever it
// cannot answer is an error in OpenAI's form.
func Handler(r *rules.Rules) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/chat/completions", func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodPost {
			notAllowed(w, req, http.MethodPost)
			return
		}
		c, err := complete(r, http.MaxBytesReader(w, req.Body, maxBody))
		if err != nil {
			fail(w, err)
			return
		}
		answer(w, http.StatusOK, c)
	})
	mux.HandleFunc("/v1/models", func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet {
			notAllowed(w, req, http.MethodGet)
			return
		}
		answer(w, http.StatusOK, list{Object: "list", Data: []entry{{ID: Name, Object: "model", OwnedBy: "setpoint-lab"}}})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		fail(w, refuse(http.StatusNotFound, "unknown_url", "unknown URL (%s %s): ask POST /v1/chat/completions or GET /v1/models", req.Method, req.URL.Path))
	})
	return mux
}

// complete reads one request and decides.
func complete(r *rules.Rules, body io.Reader) (completion, error) {
	raw, err := io.ReadAll(body)
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return completion{}, refuse(http.StatusRequestEntityTooLarge, "request_too_large", "the request is longer than %d bytes", large.Limit)
		}
		return completion{}, refuse(http.StatusBadRequest, "invalid_body", "the request could not be read to its end")
	}
	var q request
	if err := json.Unmarshal(raw, &q); err != nil {
		return completion{}, refuse(http.StatusBadRequest, "invalid_json", "the body is not a chat completion request: %v", err)
	}
	if err := q.check(); err != nil {
		return completion{}, err
	}
	m, finish, err := q.answer(r)
	if err != nil {
		return completion{}, err
	}
	sum := sha256.Sum256(raw)
	return completion{
		ID: "chatcmpl-" + hex.EncodeToString(sum[:12]), Object: "chat.completion", Created: time.Now().Unix(), Model: Name,
		Choices: []choice{{Message: m, FinishReason: finish}}, Usage: q.usage(m),
	}, nil
}

// answer decides from the evidence. Evidence that cannot be read is refused:
// only where there is none does the form alone make the answer.
func (q request) answer(r *rules.Rules) (message, string, error) {
	if !q.evident() {
		return q.plain()
	}
	seen, err := Read(q.question())
	if err != nil {
		return message{}, "", refuse(http.StatusBadRequest, "invalid_evidence", "the last message of role user holds no evidence to decide from: %v", err)
	}
	return q.reply(decide(r, seen))
}

// decide asks the rules. An action that the evidence calls not proposable is
// none that a model may give, so it declines, and says why.
func decide(r *rules.Rules, e Evidence) propose.Proposal {
	p := r.Propose(e.Request)
	if p.Kind != propose.KindAction || e.Obstacles[p.Action] == "" {
		return p
	}
	return propose.Malformed(p.Proposer, propose.FaultMalformed,
		fmt.Sprintf("%s: action %s cannot be proposed now (%s)", p.Rationale, p.Action, e.Obstacles[p.Action]))
}

// proposalJSON is a model's reply: these three keys and no other.
type proposalJSON struct {
	Action     string             `json:"action"`
	Parameters propose.Parameters `json:"parameters"`
	Rationale  string             `json:"rationale"`
}

// reply puts the proposal where the request wants it. Rules that come to no
// valid proposal are a refusal: this model does not make one up.
func (q request) reply(p propose.Proposal) (message, string, error) {
	if p.Kind == propose.KindMalformed {
		return message{Role: "assistant", Refusal: &p.Fault}, "stop", nil
	}
	name := p.Action
	if p.Kind != propose.KindAction {
		name = string(p.Kind)
	}
	b, err := json.Marshal(proposalJSON{Action: name, Parameters: p.Parameters, Rationale: propose.CleanText(p.Rationale, propose.MaxRationale)})
	if err != nil {
		return message{}, "", refuse(http.StatusInternalServerError, "no_reply", "the proposal has no JSON form: %v", err)
	}
	m, finish := q.formed(string(b))
	return m, finish, nil
}
