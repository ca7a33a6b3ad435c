package fakeslack

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"
)

//go:embed testdata/cases/*.json
var caseFiles embed.FS

// Case is one that happened to somebody: requests as Slack signed them, or an
// answer of its Web API, and what is right.
type Case struct {
	ID string
	// Source is where it was told of, What what it is, Right what is right.
	Source, What, Right string
	// Requests are to be posted in that order; none when API is the case.
	Requests []CaseRequest
	// SigningSecret is what they were signed with, Clock when they arrive.
	SigningSecret string
	Clock         time.Time
	// API is an answer of the Web API; nil when Requests are the case.
	API *CaseResponse
	// Executor is how long the approved action takes; 0 when that is not the case.
	Executor time.Duration
}

// CaseRequest is one request of a case.
type CaseRequest struct {
	Method string
	Header http.Header
	Body   []byte
}

// CaseResponse is one answer of the Web API.
type CaseResponse struct {
	Status int
	Header http.Header
	Body   []byte
}

type caseWire struct {
	ID, Source, What string
	Request          *requestWire
	Requests         []requestWire
	SigningSecret    string `json:"signing_secret"`
	ServerClock      int64  `json:"server_clock"`
	APIResponse      *struct {
		Status  int
		Headers map[string]string
		Body    string
	} `json:"api_response"`
	ExecutorSeconds int    `json:"executor_seconds"`
	RightAnswer     string `json:"right_answer"`
}

type requestWire struct {
	Method  string
	Headers map[string]string
	Body    string
}

// Cases are the recorded ones, by their ids.
func Cases() ([]Case, error) {
	names, err := fs.Glob(caseFiles, "testdata/cases/*.json")
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, name := range names {
		data, err := caseFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		c, err := readCase(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		cases = append(cases, c)
	}
	return cases, nil
}

func readCase(data []byte) (Case, error) {
	var w caseWire
	if err := json.Unmarshal(data, &w); err != nil {
		return Case{}, err
	}
	c := Case{
		ID: w.ID, Source: w.Source, What: w.What, Right: w.RightAnswer, SigningSecret: w.SigningSecret,
		Clock: time.Unix(w.ServerClock, 0).UTC(), Executor: time.Duration(w.ExecutorSeconds) * time.Second,
	}
	if w.Request != nil {
		w.Requests = append(w.Requests, *w.Request)
	}
	for _, r := range w.Requests {
		c.Requests = append(c.Requests, CaseRequest{Method: r.Method, Header: header(r.Headers), Body: []byte(r.Body)})
	}
	if r := w.APIResponse; r != nil {
		c.API = &CaseResponse{Status: r.Status, Header: header(r.Headers), Body: []byte(r.Body)}
	}
	if (c.API == nil) == (len(c.Requests) == 0) {
		return Case{}, errors.New("it has either requests or an answer of the Web API")
	}
	return c, nil
}

func header(of map[string]string) http.Header {
	h := http.Header{}
	for name, value := range of {
		h.Set(name, value)
	}
	return h
}
