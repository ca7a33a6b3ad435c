package incident

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/lab/pager"
)

// told is one delivery of a page to a receiver.
type told struct {
	at                      time.Time
	receiver, about, reason string
	ended                   bool
}

// phone is the lab's pager, and every delivery to it: a page is posted again
// with its present reason, and the pager knows the one that it was opened for.
type phone struct {
	pager *pager.Pager
	now   func() time.Time

	mu    sync.Mutex
	tolds []told
}

func newPhone(now func() time.Time) *phone { return &phone{pager: pager.New(now), now: now} }

// ServeHTTP takes a page.
func (p *phone) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	var m escalate.Message
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	for _, a := range m.Alerts {
		about := a.Labels["service"]
		if about == "" {
			about = a.Labels["episode"]
		}
		p.tolds = append(p.tolds, told{
			at: p.now(), receiver: m.Receiver, about: about, reason: cmp.Or(a.Annotations["now"], a.Labels["reason"]), ended: a.Status == "resolved",
		})
	}
	p.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.pager.Handler().ServeHTTP(w, r)
}

// all are the deliveries, in order.
func (p *phone) all() []told {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.tolds)
}

// goesOn are reasons that only say how an open page goes on.
func goesOn(reason string) bool { return reason == escalate.Acting || reason == escalate.Recovering }
