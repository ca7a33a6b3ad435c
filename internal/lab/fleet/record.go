package fleet

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// Call is one query as it was sent.
type Call struct {
	Path string
	// Form is its parameters, encoded.
	Form string
}

// Expr is the PromQL that was asked.
func (c Call) Expr() string {
	form, err := url.ParseQuery(c.Form)
	if err != nil {
		return ""
	}
	return form.Get("query")
}

// Recorder passes requests on, and remembers the queries among them while it is
// told to. It is safe for concurrent use.
type Recorder struct {
	next http.Handler

	mu    sync.Mutex
	on    bool
	calls []Call
}

// Record returns a Recorder before a handler, which remembers nothing yet.
func Record(next http.Handler) *Recorder { return &Recorder{next: next} }

// ServeHTTP remembers a query and passes it on.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.remember(req)
	r.next.ServeHTTP(w, req)
}

func (r *Recorder) remember(req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.on || !strings.HasPrefix(req.URL.Path, "/api/v1/query") {
		return
	}
	// A form that cannot be read is for the handler to refuse.
	if err := req.ParseForm(); err == nil {
		r.calls = append(r.calls, Call{Path: req.URL.Path, Form: req.Form.Encode()})
	}
}

// Begin forgets what was remembered, and remembers from now on.
func (r *Recorder) Begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on, r.calls = true, nil
}

// End gives what was sent since Begin, in the order in which it came in.
func (r *Recorder) End() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = false
	return r.calls
}
