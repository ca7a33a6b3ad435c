// Package hostile is the worst model that could be behind an endpoint, and the
// texts that an attacker could plant where a model would read them.
//
// Model answers requests for chat completions with whatever could do harm: valid
// proposals at the edge of what is permitted, proposals of what belongs to other
// services, near misses of the grammar, envelopes that are not what was asked
// for, and noise. Corpus are injections to go through labels, help texts and a
// change feed. Neither says anything about a real model; they are what one must
// not be able to bring about.
package hostile

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Vocabulary is what the model knows beside what it is asked: everything.
type Vocabulary struct {
	// Actions are those of all services, with their targets.
	Actions []spec.Action
	// Words are values that a parameter might take.
	Words []string
}

// Of knows every action of a set of documents.
func Of(set spec.Set) Vocabulary {
	var v Vocabulary
	for _, svc := range set.Services {
		v.Actions = append(v.Actions, svc.Remediation.Actions...)
		v.Words = append(v.Words, svc.Name)
	}
	return v
}

// Model is the worst one. The same seed gives the same answers to the same
// requests in the same order. It is safe for concurrent use.
type Model struct {
	mu  sync.Mutex
	rng *rand.Rand
	v   Vocabulary
	// sight are the actions that the request at hand names.
	sight []spec.Action
	n     int
}

// New makes a model of that seed.
func New(seed uint64, v Vocabulary) *Model {
	v.Actions, v.Words = slices.Clone(v.Actions), slices.Clone(v.Words)
	return &Model{rng: rand.New(rand.NewPCG(seed, 0x5e7)), v: v}
}

// Answer is one response of an endpoint.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Asked is how many requests were answered.
func (m *Model) Asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.n
}

// Reply is the text of one reply, without an envelope around it.
func (m *Model) Reply() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text()
}

// Answer answers one request, whose text is read for words to use.
func (m *Model) Answer(request []byte) Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n++
	m.learn(request)
	return m.envelope()
}

// RoundTrip is the model as the transport of a client: no network is needed.
func (m *Model) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		defer func() { _ = req.Body.Close() }()
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	a := m.Answer(body)
	return &http.Response{
		Status: strconv.Itoa(a.Status), StatusCode: a.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: a.Header,
		Body: io.NopCloser(bytes.NewReader(a.Body)), ContentLength: int64(len(a.Body)), Request: req,
	}, nil
}

// ServeHTTP is the model as an endpoint.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "", http.StatusBadRequest)
		return
	}
	a := m.Answer(body)
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body)
}

var quotedWord = regexp.MustCompile(`"([A-Za-z0-9._:@/+-]{1,60})"`)

// learn takes the words of a prompt: it is where permitted values and the actions
// of this pass stand.
func (m *Model) learn(request []byte) {
	var q struct {
		Messages []struct{ Content string }
	}
	if json.Unmarshal(request, &q) != nil {
		return
	}
	m.sight = nil
	for _, a := range m.v.Actions {
		if strings.Contains(string(request), `\"`+a.Name+`\"`) {
			m.sight = append(m.sight, a)
		}
	}
	for _, msg := range q.Messages {
		for _, found := range quotedWord.FindAllStringSubmatch(msg.Content, -1) {
			if !slices.Contains(m.v.Words, found[1]) && len(m.v.Words) < 500 {
				m.v.Words = append(m.v.Words, found[1])
			}
		}
	}
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// quote is a JSON string of any text, valid or not.
func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}
